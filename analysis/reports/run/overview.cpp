// Overview: single numbers, each with what it is counted over, or why it is not known.
#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/model_flops.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_memory.h"
#include "analysis/run/device_time.h"
#include "analysis/run/input_wait.h"
#include "analysis/run/quality.h"
#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

struct Sums {
  u64 launches = 0, kernels = 0, copies = 0, copy_bytes = 0, calls = 0, errors = 0, api_self_ns = 0, peak_memory = 0;
  bool memory_seen = false, graphs_unread = false;
};

Sums add_up(const LoadedRun& run) {
  Sums sums;
  for (const ProcessTrace& process : run.processes) {
    sums.launches += process.plain_launches + process.graph_launches;
    for (const KernelLaunches& group : process.kernels) sums.kernels += group.executions();
    for (const CopyGroup& group : process.copies) {
      if (group.kind == TransferKind::Memset) continue;
      sums.copies += group.executions();
      sums.copy_bytes += group.executed_bytes();
    }
    for (const CallFacts& call : process.calls) {
      sums.calls += call.calls;
      sums.errors += call.errors;
      sums.api_self_ns += call.self_ns;
    }
    for (const Graph& graph : process.graphs)
      sums.graphs_unread = sums.graphs_unread || (graph.unreadable && graph.launches);
  }
  for (const DeviceMemoryTotal& memory : device_memory(run)) {
    sums.peak_memory = std::max(sums.peak_memory, memory.peak_bytes);
    sums.memory_seen = true;
  }
  return sums;
}

std::string percent(u64 part, u64 whole) {
  const double share = whole ? static_cast<double>(part) * 100 / static_cast<double>(whole) : 0;
  return std::to_string(std::llround(share)) + " %";
}

bool windowed(const LoadedRun& run) {
  return std::any_of(run.processes.begin(), run.processes.end(), [](const auto& each) { return !each.window.empty(); });
}

std::string why_no_ratios(const LoadedRun& run) {
  if (!device_collected(run)) return "needs device timing: " + why_no_device_times(run);
  return "the devices reported no work";
}

// Why a ratio of the span is not given, and between what it lies.
std::string bounds_of(u64 part, const DeviceTotals& totals) {
  return "device records are missing: of " + percent(totals.unknown_ns, totals.span_ns) + " of the span, and of " +
         std::to_string(totals.untold) + " of " + std::to_string(totals.untold + totals.operations) +
         " operations, nothing is known; of what was reported: " + percent(part, totals.span_ns) + " to " +
         percent(part + totals.unknown_ns, totals.span_ns);
}

const char* busy_note(const DeviceTotals& totals) {
  if (totals.shared_device)
    return "kernels, copies, memsets over first to last activity; of a device that processes share, each one's own";
  if (totals.devices > 1) return "kernels, copies, memsets over first to last activity, devices by their spans";
  return "kernels, copies, memsets over first to last activity";
}

// What the span consists of: compute + exposed collectives + exposed copies + idle.
template <typename Add>
void add_classes(const DeviceTotals& totals, u64 kernels, const Add& add) {
  add("device_span_ns", number(totals.span_ns), Unit::Nanos, "first to last activity of each device, summed");
  add("compute_ns", number(totals.compute_ns), Unit::Nanos, "of it: a kernel ran that is no collective");
  add("exposed_collective_ns", number(totals.exposed_collective_ns), Unit::Nanos,
      "of it: a collective ran and no other kernel");
  add("exposed_copy_ns", number(totals.exposed_copy_ns), Unit::Nanos, "of it: a copy or memset ran and no kernel");
  add("idle_ns", number(totals.idle_ns), Unit::Nanos,
      totals.unknown_ns ? "of it: nothing ran, for certain" : "of it: the rest");
  if (totals.unknown_ns)
    add("unknown_ns", number(totals.unknown_ns), Unit::Nanos,
        "of it: beside device records that are missing, neither busy nor idle for certain");
  const bool untimed = totals.kernels == 0 && kernels != 0;
  add("kernel_ns", untimed ? Value() : number(totals.kernel_ns), Unit::Nanos,
      untimed ? "no kernel had a time of its own" : "sum over kernel executions: the whole of `share`");
}

// Why ratios by machine code cannot be given; empty: they can.
std::string why_no_code_ratios(const LoadedRun& run, const DeviceTotals& totals, u64 known,
                               const std::string& needs_timing) {
  if (totals.kernel_ns == 0) return needs_timing;
  if (known > 0) return "";
  const std::string why = why_no_code(run);
  return why.empty() ? "no kernel's code tells" : why;
}

template <typename Add>
void add_tensor_core_ratio(const LoadedRun& run, const DeviceTotals& totals, const PrecisionTimes& times,
                           const std::string& needs_timing, const Add& add) {
  const std::string why = why_no_code_ratios(run, totals, times.judged_ns, needs_timing);
  if (!why.empty()) return add("tensor_core_time_ratio", {}, Unit::Ratio, why);
  std::string note = "time in kernels that have matrix instructions, of kernel time";
  if (times.judged_ns < totals.kernel_ns)
    note += "; not known of " + percent(totals.kernel_ns - times.judged_ns, totals.kernel_ns) + " of it";
  add("tensor_core_time_ratio", *ratio(times.tensor_core_ns, totals.kernel_ns), Unit::Ratio, note);
}

// 16 bits: fp16 and bf16; 32 bits: fp32 and tf32; then each type under its own name, where there is any of it.
template <typename Add>
void add_precision_ratios(const LoadedRun& run, const DeviceTotals& totals, const PrecisionTimes& times,
                          const std::string& needs_timing, const Add& add) {
  const std::string why = why_no_code_ratios(run, totals, times.known_ns, needs_timing);
  if (!why.empty()) {
    add("time_16bit_ratio", {}, Unit::Ratio, why);
    return add("time_32bit_ratio", {}, Unit::Ratio, why);
  }
  const auto sum = [&times](std::initializer_list<const char*> words) {
    u64 total = 0;
    for (const char* word : words) {
      const auto found = times.by_precision.find(word);
      if (found != times.by_precision.end()) total += found->second;
    }
    return total;
  };
  std::string note = "of kernel time, by input type of the dominant arithmetic";
  if (times.known_ns < totals.kernel_ns)
    note += "; not known of " + percent(totals.kernel_ns - times.known_ns, totals.kernel_ns) + " of it";
  add("time_16bit_ratio", *ratio(sum({"fp16", "bf16"}), totals.kernel_ns), Unit::Ratio, "fp16 and bf16: " + note);
  add("time_32bit_ratio", *ratio(sum({"fp32", "tf32"}), totals.kernel_ns), Unit::Ratio, "fp32 and tf32");
  for (const auto& [word, nanos] : times.by_precision) {
    add(("time_" + word + "_ratio").c_str(), *ratio(nanos, totals.kernel_ns), Unit::Ratio, "");
  }
  if (times.none_ns) {
    add("time_no_float_ratio", *ratio(times.none_ns, totals.kernel_ns), Unit::Ratio,
        "kernels without floating-point and matrix instructions");
  }
}

// A program that makes a handful of calls has no wall to hold it against, nor has a window, before which CUPTI is opened: there the time stands alone.
template <typename Add>
void add_overhead(const DeviceTotals& totals, Nanos wall, bool of_windows, const Add& add) {
  constexpr Nanos kLeast = 1'000'000'000;
  const char* const what =
      "CUPTI's overhead records, opening it, our questions to the driver, CPU time of the thread that collects";
  if (!totals.overhead_known)
    return add("overhead_ratio", {}, Unit::Ratio, "not measured: needs CUPTI's overhead records");
  if (wall < kLeast)
    add("overhead_ratio", {}, Unit::Ratio, "a run of less than a second");
  else if (of_windows)
    add("overhead_ratio", {}, Unit::Ratio, "of windows, before which CUPTI is opened");
  else
    add("overhead_ratio", *ratio(totals.overhead_ns, static_cast<u64>(wall)), Unit::Ratio,
        std::string(what) + ", over wall; the hooks' cost is not in it");
  add("overhead_ns", number(totals.overhead_ns), Unit::Nanos, std::string(what) + "; the hooks' cost is not in it");
}

// Processes run side by side: the longest counts. Where findings are of the loop alone, so is what remains of it.
template <typename Add>
void add_floor(const LoadedRun& run, const std::string& needs_timing, const Add& add) {
  const GainFacts* longest = nullptr;
  std::string why = needs_timing, of_what;
  for (const ProcessTrace& process : run.processes) {
    const GainFacts& gains = process.loop ? process.loop->gains : process.gains;
    if (!gains.why_not.empty()) why = gains.why_not;
    if (!gains.replayed() || (longest && gains.floor_ns <= longest->floor_ns)) continue;
    longest = &gains;
    of_what = process.loop ? " (of the steps that count)" : "";
  }
  if (!longest) {
    add("replayed_ns", {}, Unit::Nanos, why);
    return add("floor_ns", {}, Unit::Nanos, why);
  }
  add("replayed_ns", number(longest->replayed_ns), Unit::Nanos,
      "from the first launch to the last operation, replayed unchanged: " +
          human_nanos(static_cast<Nanos>(longest->measured_ns)) + " were measured" + of_what);
  std::string note = "what remains of it when all findings' causes are gone: a replay";
  if (longest->windows > 1) note += " of " + std::to_string(longest->windows) + " windows of the run";
  add("floor_ns", number(longest->floor_ns), Unit::Nanos, note);
}

// Of one process: where records were lost, what several had at the same time is not known.
u64 certain_peak(const LoadedRun& run) {
  u64 most = 0;
  for (const ProcessTrace& process : run.processes) {
    const bool lost = process.dropped != 0 || !process.damage.empty();
    for (const DeviceMemory& memory : process.device_memory)
      most = std::max(most, lost ? memory.certain_peak_bytes : memory.peak_bytes);
  }
  return most;
}

// Replays of graphs whose kernels have no times of their own: the longest in all.
template <typename Add>
void add_graphs(const LoadedRun& run, u64 span, const Add& add) {
  constexpr std::size_t kMost = 5;
  struct Timed {
    const ProcessTrace* process;
    std::size_t graph;
    const GraphTimes& times() const { return process->graphs[graph].times; }
  };
  std::vector<Timed> timed;
  for (const ProcessTrace& process : run.processes) {
    for (std::size_t i = 0; i < process.graphs.size(); ++i) {
      const GraphTimes& times = process.graphs[i].times;
      if (times.device_ns != 0 && times.nodes == 0) timed.push_back({&process, i});
    }
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const Timed& a, const Timed& b) { return a.times().device_ns > b.times().device_ns; });
  if (timed.size() > kMost) timed.resize(kMost);
  for (const Timed& each : timed) {
    const Graph& graph = each.process->graphs[each.graph];
    std::string name = "graph " + std::to_string(each.graph + 1);
    if (run.processes.size() > 1) name.insert(0, std::to_string(each.process->who.pid) + " ");
    if (graph.largest != kNone) name += ": " + name_of(each.process->functions[graph.largest]).brief;
    if (!graph.unreadable) name += ", " + std::to_string(graph.nodes) + (graph.nodes == 1 ? " node" : " nodes");
    add(name, number(graph.times.device_ns), Unit::Nanos,
        std::to_string(graph.times.replays) + " replays as a whole, " + percent(graph.times.device_ns, span) +
            " of the span; its kernels have no times of their own (GPUTRACE_GRAPHS=node)");
  }
}

// "beside 24 of evaluation, 1 of compilation"
std::string steps_beside(const StepStatistics& usual) {
  std::string words;
  for (unsigned i = 0; i < kRunPhases; ++i) {
    if (usual.beside[i] == 0) continue;
    words += words.empty() ? "beside " : ", ";
    words += human_count(usual.beside[i]) + " of " + run_phase_name(static_cast<RunPhase>(i));
  }
  return words;
}

// Of several processes that of the one that launched most.
template <typename Add>
void add_steps(const LoadedRun& run, const Add& add) {
  const ProcessTrace* const process = main_steps(run);
  if (!process) {
    const std::string why = why_no_steps(run);
    add("steps", {}, Unit::Count, why);
    add("steps_counted", {}, Unit::Count, why);
    for (const char* metric : {"step_mean_ns", "step_median_ns", "step_p99_ns"}) add(metric, {}, Unit::Nanos, why);
    return;
  }
  const StepFacts& facts = process->steps;
  const StepStatistics usual = statistics_of(facts);
  add("steps", number(usual.steps), Unit::Count, std::string(step_source_name(facts.source)) + ": " + facts.evidence);
  if (run.processes.size() > 1) add("steps_pid", Value(i64{process->who.pid}), Unit::Count, name_of(*process));
  add("steps_counted", number(usual.counted), Unit::Count, steps_beside(usual));
  if (facts.other_turns)
    add("turns_of_other_threads", number(facts.other_turns), Unit::Count,
        "on " + counted(facts.other_threads, "other thread") + " at the same time");
  add("step_mean_ns", usual.counted ? number(usual.mean_ns) : Value(), Unit::Nanos, "of the steps that are counted");
  add("step_median_ns", usual.counted ? number(usual.median_ns) : Value(), Unit::Nanos, "");
  add("step_p99_ns", usual.counted ? number(usual.p99_ns) : Value(), Unit::Nanos, "");
  if (usual.counted) {
    add("loop_ns", number(usual.loop_ns), Unit::Nanos, "from the first of these steps to the last");
    add("between_steps_ns", number(usual.between_ns), Unit::Nanos, "of that, what lies in no step");
  }
  if (const auto wait = input_wait_of(facts))
    add("step_input_ratio", wait->share(), Unit::Ratio,
        input_words(facts, wait->share()) +
            ": waiting for the next batch, and copies to the device that nothing covers");
  for (unsigned i = 0; i < kStepCategories && usual.divided; ++i) {
    const std::string metric = std::string("step_") + step_category_name(static_cast<StepCategory>(i)) + "_ns";
    if (usual.mean_parts[i])
      add(metric.c_str(), number(usual.mean_parts[i]), Unit::Nanos,
          "of the mean step: " + percent(usual.mean_parts[i], usual.mean_ns));
  }
}

void fill_overview(const LoadedRun& run, Table& table) {
  const Sums sums = add_up(run);
  const auto add = [&table](const std::string& metric, Value value, Unit unit, std::string note) {
    table.rows.push_back({metric, std::move(value), std::string(unit_name(unit)), std::move(note)});
  };
  const auto unknown = [&add](const char* metric, Unit unit, const std::string& why) { add(metric, {}, unit, why); };
  const std::string needs_timing = why_no_ratios(run);
  const PrecisionTimes precision = precision_times(run);
  const std::size_t devices = run.only_device ? 1 : DeviceMap(run).entries().size();
  const bool any = run.wall_end > run.wall_begin;
  add("wall_ns", any ? Value(run.wall_end - run.wall_begin) : Value(), Unit::Nanos,
      any ? windowed(run) ? "first to last record of the windows, all processes" : "first to last record, all processes"
          : "no calls were recorded");
  add("processes", number(static_cast<u64>(run.processes.size())), Unit::Count, "");
  add("devices", number(static_cast<u64>(devices)), Unit::Count, "in use");
  add("launches", number(sums.launches), Unit::Count, "plain launch calls outside captures + graph launches");
  add("kernels", number(sums.kernels), Unit::Count,
      sums.graphs_unread ? "executions; kernels of graphs that could not be read are missing"
                         : "executions: plain launches + graph nodes x replays");
  const DeviceTotals totals = device_totals(run);
  const auto of_span = [&](const char* metric, u64 part, const char* what) {
    const auto value = ratio(part, totals.span_ns);
    if (totals.span_ns && totals.too_little())
      add(metric, {}, Unit::Ratio, bounds_of(part, totals));
    else if (value)
      add(metric, *value, Unit::Ratio, what);
    else
      add(metric, {}, Unit::Ratio, needs_timing);
  };
  of_span("gpu_busy_ratio", totals.busy_ns, busy_note(totals));
  of_span("gpu_idle_ratio", totals.idle_ns, "1 - busy: of the same span");
  of_span("launch_bound_ratio", totals.launch_idle_ns, "idle because of the launch, of the span");
  add_tensor_core_ratio(run, totals, precision, needs_timing, add);
  const ModelFlops flops = model_flops(run, totals.too_little() ? 0 : totals.span_ns);
  add("mfu", flops.utilization, Unit::Ratio, flops.note);
  add_steps(run, add);
  add_precision_ratios(run, totals, precision, needs_timing, add);
  add("copies", number(sums.copies), Unit::Count, "executed, those of graphs included, memsets not");
  add("copy_bytes", number(sums.copy_bytes), Unit::Bytes, "");
  if (ledger_has_holes(run))
    add("peak_memory_bytes", {}, Unit::Bytes,
        "allocations and frees may be among the records that were lost; at least " + human_bytes(certain_peak(run)) +
            " for certain");
  else
    add("peak_memory_bytes", number(sums.peak_memory), Unit::Bytes, "of the fullest device, all processes");
  add_overhead(totals, run.wall_end - run.wall_begin, windowed(run), add);
  if (const auto held = ratio(totals.held_down_ns, totals.clocked_ns)) {
    add("clocks_held_down_ratio", *held, Unit::Ratio,
        "power cap, heat or an unknown reason, of the time in which clocks were sampled");
  } else {
    const std::string why = why_no_environment(run);
    unknown("clocks_held_down_ratio", Unit::Ratio, why.empty() ? "fewer than two samples of the clocks" : why);
  }
  add("calls", number(sums.calls), Unit::Count, "intercepted, every level");
  add("errors", number(sums.errors), Unit::Count, "calls that returned an error");
  if (totals.span_ns) add_classes(totals, sums.kernels, add);
  add_graphs(run, totals.span_ns, add);
  add_floor(run, needs_timing, add);
  add("api_ns", number(sums.api_self_ns), Unit::Nanos, "host time in CUDA calls, summed over threads");
}

}  // namespace

extern constexpr SectionReport overview_report = {
    .section = "overview",
    .title = "Overview",
    .answers = "single numbers: launches, kernels, copies, peak memory, wall time …",
    .shown = Shown::Always,
    .needs = {},
    .columns = {{"metric", Unit::Text},
                {"value", Unit::None},
                {"unit", Unit::Text},
                extra({"note", Unit::Text, Hint::Name})},
    .fill = fill_overview,
};

}  // namespace gputrace
