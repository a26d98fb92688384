// Operations of frameworks: how long they take on the host, and what they have a device do.
#include <algorithm>
#include <map>

#include "analysis/kernels/kernel_callers.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/sites.h"

namespace gputrace {
namespace {

struct Sum {
  std::string name;
  OperationTotals host;
  u64 device_total_ns = 0, device_self_ns = 0, idle_ns = 0;
  u64 replayed = 0;  // kernels
  TensorCoreShare tensor_cores;
  OriginFlops flops;
  std::map<std::string, u64> sites;  // device time by line
};

// The names of an operation and of those around it, the outermost first.
std::string path_of(const SourceLines& lines, u32 frame) {
  std::string path;
  for (; frame != 0 && frame < lines.frames.size(); frame = lines.frames[frame].parent)
    path.insert(0, lines.frames[frame].function + (path.empty() ? "" : " / "));
  return path;
}

class Operations {
 public:
  explicit Operations(const LoadedRun& run) : names_(run) {
    for (const ProcessTrace& process : run.processes) add(process, process.lines);
  }
  const std::map<std::string, Sum>& by_path() const { return sums_; }

 private:
  void add(const ProcessTrace& process, const SourceLines& lines) {
    std::vector<Sum*> of_frame(lines.frames.size(), nullptr);
    const auto sum_of = [&](u32 frame) -> Sum& {
      if (!of_frame[frame]) {
        of_frame[frame] = &sums_[path_of(lines, frame)];
        of_frame[frame]->name = lines.frames[frame].function;
      }
      return *of_frame[frame];
    };
    for (u32 frame = 1; frame < std::min(lines.operations.size(), lines.frames.size()); ++frame) {
      const OperationTotals& more = lines.operations[frame];
      if (more.count == 0) continue;
      OperationTotals& host = sum_of(frame).host;
      host.count += more.count;
      host.total_ns += more.total_ns;
      host.self_ns += more.self_ns;
    }
    const std::vector<TensorCoreShare> tensor_cores = tensor_core_shares(process);
    for (u32 origin = 0; origin < std::min(lines.origins.size(), process.library.flops.size()); ++origin)
      add_flops(lines, lines.origins[origin].operation, process.library.flops[origin], sum_of);
    for (const KernelOrigin& pair : lines.replayed) {
      u32 frame = pair.origin < lines.origins.size() ? lines.origins[pair.origin].operation : 0;
      for (; frame != 0 && frame < lines.frames.size(); frame = lines.frames[frame].parent)
        sum_of(frame).replayed += pair.executions;
    }
    for (u32 origin = 0; origin < std::min(lines.origins.size(), lines.times.size()); ++origin) {
      const StackDeviceTimes& times = lines.times[origin];
      const u32 innermost = lines.origins[origin].operation;
      if (innermost == 0 || innermost >= lines.frames.size()) continue;
      Sum& own = sum_of(innermost);
      own.device_self_ns += times.device_ns;
      own.idle_ns += times.idle_ns;
      const std::string site = site_of_origin(lines, origin, names_);
      for (u32 frame = innermost; frame != 0; frame = lines.frames[frame].parent) {
        Sum& sum = sum_of(frame);
        sum.device_total_ns += times.device_ns;
        if (origin < tensor_cores.size()) sum.tensor_cores.add(tensor_cores[origin]);
        if (!site.empty()) sum.sites[site] += times.device_ns;
      }
    }
  }

  // Of an operation and of all around it.
  template <typename SumOf>
  static void add_flops(const SourceLines& lines, u32 innermost, const OriginFlops& more, SumOf&& sum_of) {
    for (u32 frame = innermost; frame != 0 && frame < lines.frames.size(); frame = lines.frames[frame].parent) {
      OriginFlops& sum = sum_of(frame).flops;
      sum.flops += more.flops, sum.calls += more.calls, sum.untold += more.untold;
    }
  }

  const FileNames names_;
  std::map<std::string, Sum> sums_;
};

Value most(const std::map<std::string, u64>& sites) {
  const auto largest =
      std::max_element(sites.begin(), sites.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == sites.end() ? Value() : Value(largest->first);
}

u64 device_time(const LoadedRun& run) {
  u64 sum = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const StackDeviceTimes& times : process.lines.times) sum += times.device_ns;
  }
  return sum;
}

void fill_ops(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("device times are not known: " + why_no_device_times(run));
  const u64 all = device_time(run);
  const Operations operations(run);
  for (const auto& [path, sum] : operations.by_path()) {
    const bool ended = sum.host.count != 0;
    table.rows.push_back(
        {sum.name, path, ended ? number(sum.host.total_ns) : Value(), ended ? number(sum.host.self_ns) : Value(),
         timed ? number(sum.device_total_ns) : Value(), timed ? number(sum.device_self_ns) : Value(),
         ended ? number(sum.host.count) : Value(),
         timed && all ? Value(static_cast<double>(sum.device_self_ns) / static_cast<double>(all)) : Value(),
         timed ? number(sum.idle_ns) : Value(), sum.tensor_cores.ratio(),
         sum.flops.calls != 0 && sum.flops.untold == 0 ? number(sum.flops.flops) : Value(), most(sum.sites),
         replays_graphs(run) ? number(sum.replayed) : Value()});
  }
  sort_table(table, "host_self_ns");
  if (timed) sort_table(table, "device_self_ns");
  table.sort = timed ? "device_self_ns" : "host_self_ns";
}

}  // namespace

extern constexpr SectionReport ops_report = {
    .section = "ops",
    .title = "Operations of the framework, by the device time of what they launched themselves",
    .answers =
        "by operation and those around it: count, host and device time, total and self, idle time before its work, "
        "line",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Operations},
    .columns = {{"op", Unit::Text, Hint::Name},
                {"path", Unit::Text, Hint::Detail},
                {"host_total_ns", Unit::Nanos},
                {"host_self_ns", Unit::Nanos},
                {"device_total_ns", Unit::Nanos},
                {"device_self_ns", Unit::Nanos},
                {"count", Unit::Count},
                {"share", Unit::Ratio},
                {"idle_ns", Unit::Nanos},
                {"tensor_core_ratio", Unit::Ratio},
                {"flops", Unit::Count, Hint::Large},
                {"site", Unit::Text},
                extra({"replayed_kernels", Unit::Count})},
    .notes = {"operations are PyTorch's own, or XLA's as it tells them by NVTX: modules, and within them HLO "
              "operations (behind them the framework's name, where XLA has one)",
              "self = without the operations within it; device = time of kernels, copies and memsets that it launched; "
              "share = of all "
              "device time that was joined; idle = time that the device did nothing before them",
              "replayed_kernels = kernels that replays of CUDA graphs ran and that were captured in it or within it "
              "(nodes x replays)",
              "the time of a replay is that of what was captured with GPUTRACE_GRAPHS=node, else it is known as a "
              "whole and is the launching call's",
              "site = the program's line from which most of its device time was asked for; of backward operations that "
              "of the "
              "forward one",
              "tensor_core_ratio = kernels with matrix instructions, of the time of all kernels that it and the "
              "operations within it launched; absent where that is not known of more than 1 % of it",
              "flops = of the products, convolutions and transforms that it had vendor libraries do "
              "(GPUTRACE_COLLECT=+libs), those of its own kernels not"},
    .fill = fill_ops,
    .of_all_devices = true,
};

}  // namespace gputrace
