// A device that does nothing for a good part of its time, and what most of that is; a loop that waits for its next batch.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/facts/kind_names.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/run/host_use.h"
#include "analysis/run/input_ops.h"
#include "analysis/run/input_wait.h"
#include "analysis/run/processor_use.h"
#include "analysis/run/sites.h"
#include "analysis/words/human.h"
#include "trace/schema.h"

namespace gputrace {
namespace {

// Of what a finding speaks of: below it nothing is said.
constexpr double kGoodPart = 0.2;

bool is_good_part(u64 part, u64 of) {
  return part != 0 && static_cast<double>(part) >= kGoodPart * static_cast<double>(of);
}

void say_files(const FilesUsed& used, u64 of_ns, const std::string& where, Finding& finding) {
  if (!is_good_part(used.total_ns, of_ns)) return;
  const std::string path = used.path.empty() ? "files without a name" : used.path;
  finding.text += fmt::format("; file calls {} took {} of the run ({} in {} calls), most of it {} of {}", where,
                              human_nanos(static_cast<Nanos>(used.total_ns)), human_bytes(used.bytes),
                              human_count(used.count), word_of(used.call), path);
  finding.evidence.emplace_back("io_ns", number(used.total_ns));
  finding.evidence.emplace_back("io_bytes", number(used.bytes));
  finding.evidence.emplace_back("io_calls", number(used.count));
  finding.evidence.emplace_back("io_call", std::string(word_of(used.call)));
  finding.evidence.emplace_back("io_path", path);
}

void say_wait(const std::optional<LongWait>& waited, u64 of_ns, Finding& finding) {
  if (!waited || !is_good_part(waited->total_ns, of_ns)) return;
  const bool is_python = waited->what == WaitFor::InterpreterLock;
  finding.text += fmt::format("; its thread waited {} of the run {}({}, {} times)",
                              human_nanos(static_cast<Nanos>(waited->total_ns)),
                              is_python ? "for Python's lock, which other threads held " : "at " + waited->site + " ",
                              word_of(waited->what), human_count(waited->count));
  finding.evidence.emplace_back("wait_for", std::string(word_of(waited->what)));
  finding.evidence.emplace_back("wait_ns", number(waited->total_ns));
  finding.evidence.emplace_back("wait_count", number(waited->count));
  if (is_python)
    finding.fix =
        "let Python's other threads do less while this one launches: their work in processes, or in calls that "
        "give the lock away";
}

std::string fix_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::Host:
      return "let the host work ahead: prepare the next batch while the device computes (loader workers, prefetch)";
    case IdleCause::Library:
      return "look at what the library does on the host: plans and handles are made once, before the loop";
    case IdleCause::OtherStream:
      return "start earlier what the stream waits for, or give it work that does not depend on it";
    case IdleCause::Peer:
      return "divide the work evenly over the devices, or let each have the next piece while it waits (more, smaller "
             "batches in flight)";
    case IdleCause::HostFunction:
      return "keep functions of the host out of streams that have work behind them";
    default:
      return "";  // has a finding of its own, or nothing is to be done
  }
}

std::optional<WhatIf> change_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::Host:
    case IdleCause::Library:
      return WhatIf::HostWork;
    case IdleCause::Launch:
      return WhatIf::Launches;
    case IdleCause::Synchronization:
      return WhatIf::Waits;
    case IdleCause::Polling:
      return WhatIf::Polling;
    case IdleCause::Copy:
      return WhatIf::Copies;
    case IdleCause::Allocation:
      return WhatIf::Allocations;
    case IdleCause::ModuleLoad:
      return WhatIf::Modules;
    case IdleCause::HostFunction:
      return WhatIf::HostFunctions;
    default:
      return {};
  }
}

IdleCause largest_cause(const DeviceTimes& device) {
  std::array<u64, kIdleCauses> parts{};
  for (unsigned i = 0; i < kIdleCauses; ++i) parts[i] = device.causes[i].total_ns;
  parts[static_cast<unsigned>(IdleCause::Collection)] = 0;  // not the program's
  return static_cast<IdleCause>(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

// What the host does in its gaps would be done beside the device's work, had it not waited before (for the device, or for a processor):
// then the finding of those waits comes first.
const char* wait_behind(const ProcessTrace& process) {
  const auto work = gain_of(process, WhatIf::HostWork);
  if (!work || *work == 0) return nullptr;
  const auto hides_half = [&](WhatIf what) { return 2 * gain_of(process, what).value_or(0) >= *work; };
  if (process.loops.needless_waits >= kLoopTimes && hides_half(WhatIf::Waits)) return "needless-synchronization";
  if (process.loops.result_waits >= kLoopTimes && hides_half(WhatIf::Results)) return "result-waits";
  if (2 * gain_of_processors(process) >= *work) return "busy-processors";
  if (process.allocation_loop.between_launches >= kLoopTimes && hides_half(WhatIf::Allocations))
    return "allocation-in-loop";
  return nullptr;
}

// The thread that launched what ended the gaps with most of the host's work; 0: not known.
i32 thread_that_works(const ProcessTrace& process, const DeviceTimes& device) {
  std::map<u32, Nanos> by_thread;
  for (const IdleGap& gap : device.longest) by_thread[gap.thread] += gap.parts[static_cast<unsigned>(IdleCause::Host)];
  const auto most = std::max_element(by_thread.begin(), by_thread.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == by_thread.end() || most->first >= process.threads.size() ? 0 : process.threads[most->first].tid;
}

// Of the host's time, what lay in short gaps; 0: it is not known, or not most of what it does at the line that the finding names. There the
// device is held up all along, and no place is that something could be moved away from; a batch, a file, a log line take longer. Waiting for
// batches is another finding's.
u64 in_short_gaps(const DeviceTimes& device, const IdleSite& site, u64 host_ns, u64 batches_ns) {
  u64 in_long = 0;
  for (const IdleGap& gap : device.longest) {
    if (gap.length() >= IdleSite::kLongGap)
      in_long += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Host)]);
  }
  const bool all_long_kept =
      device.longest.size() < DeviceTimes::kGapsKept || device.longest.back().length() < IdleSite::kLongGap;
  const u64 loading = std::min(batches_ns, site.in_long_ns);
  return all_long_kept && 2 * (site.in_long_ns - loading) <= site.host_ns - loading
             ? host_ns - std::min(host_ns, in_long)
             : 0;
}

// Waiting for others is no work that could be done less of. Where nothing else of the program worked meanwhile either, what is waited for
// comes from outside, and no change of the host's own work brings that time back: returns how much.
u64 add_waiting(const ProcessTrace& process, i32 tid, const WaitForOthers& waits, u64 host_ns, Finding& finding) {
  if (!is_good_part(waits.total_ns, host_ns)) return 0;
  const std::optional<u64> others = cpu_of_others(process, tid);
  const bool from_outside = others && 2 * *others <= waits.total_ns;
  finding.text += fmt::format("; {} of that it waits for {} (most of it in {}, at {})",
                              human_nanos(static_cast<Nanos>(waits.total_ns)),
                              from_outside ? "what comes from outside"
                              : others     ? "other threads or processes"
                                           : "others",
                              waits.function, waits.site);
  finding.evidence.emplace_back("waits_ns", number(waits.total_ns));
  finding.evidence.emplace_back("waits_in", waits.function);
  finding.evidence.emplace_back("waits_at", waits.site);
  finding.evidence.emplace_back("others_cpu_ns", others ? number(*others) : Value());
  return from_outside ? waits.total_ns : 0;
}

// Lines have what all devices waited for them.
WaitForOthers waits_before(const ProcessTrace& process, u64 host_ns) {
  WaitForOthers waits = wait_for_others(process);
  u64 of_all = 0;
  for (const DeviceTimes& device : process.device.devices)
    of_all += device.causes[static_cast<unsigned>(IdleCause::Host)].total_ns;
  const double part = of_all == 0 ? 1 : static_cast<double>(host_ns) / static_cast<double>(of_all);
  waits.total_ns = static_cast<u64>(part * static_cast<double>(waits.total_ns));
  return waits;
}

const char* fix_of_waiting(bool for_outside) {
  return for_outside ? "nothing of the program's own work: it is asked too seldom for the device; gathering requests "
                       "for a shorter time answers them sooner"
                     : "make what it waits for ahead, or in more threads or processes";
}

// Advice of the loop's own: a loader that the loop does not wait for need not load faster.
void advise_on_host(const ProcessTrace& process, const DeviceTimes& device, const IdleSite& site, u64 host_ns,
                    Finding& finding) {
  constexpr u64 kFew = 10;  // one part of so many
  const auto input = input_wait_of(process.steps);
  const u64 in_short = in_short_gaps(device, site, host_ns, input ? input->batches_ns : 0);
  if (in_short != 0) {
    const std::string part = in_short == host_ns ? "all" : human_nanos(static_cast<Nanos>(in_short));
    finding.text += "; " + part + " of that in gaps shorter than 1 ms";
    finding.evidence.emplace_back("short_gaps_ns", number(in_short));
    finding.fix =
        "give the device more for each launch, since the host is busy all along: larger batches, CUDA graphs, fused "
        "kernels (torch.compile), less of the program's own work from launch to launch";
  } else if (input && process.steps.batches != 0 && kFew * input->batches_ns <= host_ns) {
    finding.fix = "do that work beside the device's (before a wait, in another thread or process), or less often";
  }
}

// The work lies behind the first line and before the second: said where these are two, and it is a good part of all.
void add_pause(const ProcessTrace& process, u64 host_ns, Finding& finding) {
  const PausedLines pause = lines_of_pauses(process);
  if (pause.after.empty() || pause.before.empty() || pause.after == pause.before) return;
  if (!is_good_part(pause.length_ns, host_ns)) return;
  finding.text += fmt::format("; {} of that between {} and {}", human_nanos(static_cast<Nanos>(pause.length_ns)),
                              pause.after, pause.before);
  finding.evidence.emplace_back("pause_after", pause.after);
  finding.evidence.emplace_back("pause_before", pause.before);
  finding.evidence.emplace_back("pause_ns", number(pause.length_ns));
}

// What of the host's work was file calls or waiting, at the line where that work is.
void add_use(const ProcessTrace& process, const DeviceTimes& device, u64 host_ns, Finding& finding) {
  const std::string& site = finding.site;
  if (!process.samples.files.empty()) say_files(files_used_at(process, site), host_ns, "at " + site, finding);
  if (process.samples.waits.empty()) return;
  say_wait(longest_wait_at(process, thread_that_works(process, device), site), host_ns, finding);
}

void lower_gain(Finding& finding, u64 by) {
  if (by == 0) return;
  finding.gain_ns -= std::min(finding.gain_ns, by);
  for (auto& [name, value] : finding.evidence) {
    if (name == "gain_ns") value = number(finding.gain_ns);
  }
}

std::optional<Finding> judge_device(const ProcessTrace& process, const DeviceTimes& device) {
  if (misses_records(process)) return {};
  const double span = static_cast<double>(device.span_ns());
  const u64 profiler = device.causes[static_cast<unsigned>(IdleCause::Collection)].total_ns;
  const double idle = static_cast<double>(device.idle_ns - profiler);
  if (span <= 0 || idle <= (1 - kBusyShare) * span) return {};
  if (static_cast<double>(device.unknown_ns) > kUnknownShare * span) return {};
  const IdleCause cause = largest_cause(device);
  const u64 most = device.causes[static_cast<unsigned>(cause)].total_ns;
  Finding finding{
      "idle-gaps",
      idle >= kProblemShare * span   ? Severity::Problem
      : idle >= kWarningShare * span ? Severity::Warning
                                     : Severity::Hint,
      "idle-causes",
      fmt::format(
          "device {} is idle {} of {} ({:.0f} %{}) in {} gaps; most of it: {}, {}", device.device,
          human_nanos(static_cast<Nanos>(idle)), human_nanos(static_cast<Nanos>(span)), idle / span * 100,
          profiler ? fmt::format(", without {} that tracing took", human_nanos(static_cast<Nanos>(profiler))) : "",
          human_count(device.gaps), idle_cause_name(cause), human_nanos(static_cast<Nanos>(most))),
      fix_of(cause),
      {{"device", static_cast<i64>(device.device)},
       {"idle_ns", number(static_cast<u64>(idle))},
       {"span_ns", number(device.span_ns())},
       {"share", idle / span},
       {"gaps", number(device.gaps)},
       {"longest_ns", number(device.longest.empty() ? u64{0} : device.longest.front().length())},
       {"cause", std::string(idle_cause_name(cause))},
       {"cause_ns", number(most)}}};
  if (profiler) finding.evidence.emplace_back("left_out_profiler_ns", number(profiler));
  const IdleSite site = site_of_idle(process, cause);
  finding.site = site.site;
  say_within(site.within, finding);
  u64 from_outside = 0;
  if (cause == IdleCause::Host) {
    add_pause(process, most, finding);
    const WaitForOthers waits = waits_before(process, most);
    from_outside = add_waiting(process, thread_that_works(process, device), waits, most, finding);
    if (2 * waits.total_ns > most)
      finding.fix = fix_of_waiting(from_outside != 0);
    else
      advise_on_host(process, device, site, most, finding);
    add_use(process, device, most, finding);
  }
  const auto input = input_wait_of(process.steps);
  if (cause == IdleCause::Host && input && 2 * input->batches_ns > most) {  // input-bound has the fix
    finding.severity = Severity::Hint;
    finding.text += "; most of that waits for the next batch";
    finding.fix.clear();
    return finding;
  }
  if (2 * static_cast<double>(gain_of_compiling(process)) > idle) {  // recompilation has the fix
    finding.severity = Severity::Hint;
    finding.text += "; in most of it the program compiles";
    finding.fix.clear();
    return finding;
  }
  const u64 between = device.between_launches.total_ns;
  const u64 launching = between + device.causes[static_cast<unsigned>(IdleCause::Launch)].total_ns;
  const bool launch_bound = cause == IdleCause::Host && launch_share(device) >= kLaunchBound;
  if (launch_bound) {
    if (is_good_part(between, most))
      finding.text += fmt::format("; {} of that lies between launches that follow each other (launch-bound)",
                                  human_nanos(static_cast<Nanos>(between)));
    finding.evidence.emplace_back("between_launches_ns", number(between));
  }
  if (launch_bound && launching > most - between) {
    finding.severity = Severity::Hint;
    finding.fix.clear();
    return finding;
  }
  const char* const behind = cause == IdleCause::Host ? wait_behind(process) : nullptr;
  if (behind) {
    finding.severity = Severity::Hint;
    finding.text +=
        fmt::format("; without the waits ({}) the host would do most of that beside the device's work", behind);
  }
  if (const auto change = change_of(cause)) set_gain(finding, process, *change);
  lower_gain(finding, from_outside);
  // A gain is promised once: what launching less brings is not this finding's.
  if (launch_bound) lower_gain(finding, gain_of(process, WhatIf::Launches).value_or(0));
  return finding;
}

// The device that is idle longest; one that waits for another device only where no other is idle.
std::optional<Finding> judge_idle_gaps(const ProcessTrace& process) {
  std::optional<Finding> worst;
  std::pair<bool, u64> most{false, 0};
  for (const DeviceTimes& device : process.device.devices) {
    auto made = judge_device(process, device);
    if (!made) continue;
    const std::pair<bool, u64> rank{largest_cause(device) != IdleCause::Peer, device.idle_ns};
    if (rank > most) worst = std::move(made), most = rank;
  }
  return worst;
}

std::string fix_of_loader(const std::string& loader) {
  if (loader.rfind("_SingleProcess", 0) == 0)
    return "load ahead in other processes: DataLoader(num_workers=4 or more, persistent_workers=True, pin_memory=True)";
  if (loader.rfind("_MultiProcessing", 0) == 0)
    return "more workers or a larger prefetch_factor, or less work for each batch: cheaper transforms, data kept "
           "decoded";
  return "prepare the next batch while the device computes";
}

// What of making a batch was reading or waiting: of the thread itself, or of the workers, each of which has all of that time.
void add_reading(const ProcessTrace& process, u64 waited_ns, Finding& finding) {
  const std::size_t workers = loader_processes(process).size();
  if (workers != 0) return say_files(read_by_workers(process), waited_ns * workers, "of its workers", finding);
  say_files(read_by_loop(process), waited_ns, "within the loader", finding);
  const auto& devices = process.device.devices;
  if (process.samples.waits.empty() || devices.empty()) return;
  const auto worst = std::max_element(devices.begin(), devices.end(),
                                      [](const auto& a, const auto& b) { return a.idle_ns < b.idle_ns; });
  say_wait(longest_wait_at(process, thread_that_works(process, *worst), finding.site), waited_ns, finding);
}

std::optional<Finding> judge_input(const ProcessTrace& process) {
  const StepFacts& steps = process.steps;
  const auto wait = input_wait_of(steps);
  if (!wait || wait->batches_ns == 0) return {};
  const u64 gain = wait->batches_ns;
  const double share = static_cast<double>(gain) / static_cast<double>(wait->steps_ns);
  if (share < kModeratelyInputBound) return {};
  const auto words = [&](u64 length) { return human_nanos(static_cast<Nanos>(length / wait->steps)); };
  Finding finding{"input-bound",
                  share >= kHighlyInputBound ? Severity::Problem : Severity::Warning,
                  "steps",
                  fmt::format("{}: of each step of {} the device waits {} ({:.0f} %) for the next batch",
                              input_verdict(share), words(wait->steps_ns), words(gain), share * 100),
                  fix_of_loader(steps.loader),
                  {{"input_ns", number(gain)},
                   {"steps", number(wait->steps)},
                   {"share", share},
                   {"batches", number(steps.batches)},
                   {"batch_ns", number(steps.batch_ns)},
                   {"loader", steps.loader}}};
  finding.gain_ns = gain;
  finding.site = site_of_idle(process, IdleCause::Host).site;
  const auto of_workers = worker_lines(process, FileNames(process));
  if (!of_workers.empty()) {  // they make what the loop waits for
    finding.site = of_workers.front().site;
    finding.text += fmt::format("; {:.0f} % of what its workers do meanwhile is {}", of_workers.front().share * 100,
                                of_workers.front().site);
    finding.evidence.emplace_back("worker_share", of_workers.front().share);
    finding.evidence.emplace_back("worker_samples", number(of_workers.front().samples));
  }
  add_reading(process, gain, finding);
  return finding;
}

// Findings of one cause: they say what to do about it.
std::vector<std::string> findings_of(const std::string& cause) {
  static const std::pair<IdleCause, std::vector<std::string>> kOwn[] = {
      {IdleCause::Host, {"straggler"}},
      {IdleCause::Launch, {"launch-bound", "graph-candidates", "short-kernels"}},
      {IdleCause::Synchronization, {"needless-synchronization", "result-waits"}},
      {IdleCause::Polling, {"polling"}},
      {IdleCause::Copy, {"synchronous-copies", "pageable-async-copies", "exposed-copies", "synchronous-memsets"}},
      {IdleCause::Allocation, {"allocation-in-loop"}},
      {IdleCause::ModuleLoad, {"code-loading"}}};
  for (const auto& [own, ids] : kOwn) {
    if (cause == idle_cause_name(own)) return ids;
  }
  return {};
}

Value evidence_of(const Finding& finding, const char* key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key) return value;
  }
  return {};
}

// Where the largest cause has a finding of its own that promises most of it, this one does not promise it again.
void leave_gain_to_others(const Findings& others, Finding& gaps) {
  constexpr double kAsMuch = 0.75;
  const Value cause = evidence_of(gaps, "cause");
  if (gaps.gain_ns == 0 || !std::holds_alternative<std::string>(cause)) return;
  const auto ids = findings_of(std::get<std::string>(cause));
  for (const Finding& other : others) {
    if (std::find(ids.begin(), ids.end(), other.id) == ids.end()) continue;
    if (evidence_of(other, "pid") != evidence_of(gaps, "pid")) continue;
    if (static_cast<double>(other.gain_ns) < kAsMuch * static_cast<double>(gaps.gain_ns)) continue;
    gaps.gain_ns = 0;
    gaps.severity = Severity::Hint;
    gaps.text += fmt::format(" ({})", other.id);
    return;
  }
}

void find_idle_gaps(const LoadedRun& run, Findings& found) {
  Findings own;
  add_worst(run, own, judge_idle_gaps);
  for (Finding& gaps : own) leave_gain_to_others(found, gaps), found.push_back(std::move(gaps));
  add_worst(run, found, judge_input);
}

}  // namespace

extern constexpr FindingRule idle_gaps_rule = {
    .findings = {{"idle-gaps", "a device that is idle for more than 2 % of its time, and the largest cause of it"},
                 {"input-bound", "a loop that waits for its next batch while the device has nothing to do"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_idle_gaps,
    .of_the_loop = true,
};

}  // namespace gputrace
