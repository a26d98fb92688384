// Operations of frameworks: how long they take on the host, and what they have a device do.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/kernels/kernel_callers.h"
#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

// An operation, in one way of being within others.
struct OperationSum {
  std::string_view name;
  u32 around = 0;       // index of the operation around it; 0: none
  bool is_row = false;  // something is told of itself
  OperationTotals host;
  u64 device_total_ns = 0, device_self_ns = 0, idle_ns = 0;
  u64 replayed = 0;  // kernels
  TensorCoreShare tensor_cores;
  OriginFlops flops;
  std::map<u32, u64> sites;  // device time by line
};

class Operations {
 public:
  // `run` outlives this.
  explicit Operations(const LoadedRun& run) : names_(run) {
    for (const ProcessTrace& process : run.processes) add(process, process.lines);
  }
  const std::vector<OperationSum>& sums() const { return sums_; }

  // The names of an operation and of those around it, the outermost first; of a long one the inner end.
  std::string path_of(const OperationSum& sum) const {
    constexpr std::size_t kMostPath = 1024;
    std::vector<std::string_view> names{sum.name};
    std::size_t length = sum.name.size();
    u32 at = sum.around;
    for (; at != 0 && length + sums_[at].name.size() <= kMostPath; at = sums_[at].around) {
      names.push_back(sums_[at].name);
      length += sums_[at].name.size();
    }
    std::string path = at == 0 ? "" : "… / ";
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (name != names.rbegin()) path += " / ";
      path += *name;
    }
    return path;
  }

  Value site_of(const OperationSum& sum) const {
    const auto largest = std::max_element(sum.sites.begin(), sum.sites.end(), [this](const auto& a, const auto& b) {
      return std::tie(a.second, *sites_[b.first]) < std::tie(b.second, *sites_[a.first]);
    });
    return largest == sum.sites.end() ? Value() : Value(*sites_[largest->first]);
  }

 private:
  void add(const ProcessTrace& process, const SourceLines& lines) {
    std::vector<u32> place(lines.frames.size(), 0);
    const auto sum_of = [&](u32 frame) -> OperationSum& {
      OperationSum& sum = sums_[place_of(lines, frame, place)];
      sum.is_row = true;
      return sum;
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
      OperationSum& own = sum_of(innermost);
      own.device_self_ns += times.device_ns;
      own.idle_ns += times.idle_ns;
      const u32 site = number_of(site_of_origin(lines, origin, names_));
      for (u32 frame = innermost; frame != 0; frame = lines.frames[frame].parent) {
        OperationSum& sum = sum_of(frame);
        sum.device_total_ns += times.device_ns;
        if (origin < tensor_cores.size()) sum.tensor_cores.add(tensor_cores[origin]);
        if (site != 0) sum.sites[site] += times.device_ns;
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

  // The place in `sums_` of a frame, which `place` keeps: frames of the same names within the same operations have the same one.
  u32 place_of(const SourceLines& lines, u32 frame, std::vector<u32>& place) {
    std::vector<u32> inner;
    for (; frame != 0 && place[frame] == 0; frame = lines.frames[frame].parent) inner.push_back(frame);
    u32 at = place[frame];
    for (auto each = inner.rbegin(); each != inner.rend(); ++each) {
      const std::string_view name = lines.frames[*each].function;
      const auto [known, is_new] = places_.try_emplace({at, name}, static_cast<u32>(sums_.size()));
      if (is_new) {
        sums_.emplace_back();
        sums_.back().name = name;
        sums_.back().around = at;
      }
      place[*each] = at = known->second;
    }
    return at;
  }

  // 0: of no line.
  u32 number_of(const std::string& site) {
    if (site.empty()) return 0;
    const auto [known, is_new] = numbers_.try_emplace(site, static_cast<u32>(sites_.size()));
    if (is_new) sites_.push_back(&known->first);
    return known->second;
  }

  const FileNames names_;
  std::map<std::pair<u32, std::string_view>, u32> places_;
  std::vector<OperationSum> sums_{1};  // the first stands for none
  std::map<std::string, u32> numbers_;
  std::vector<const std::string*> sites_{nullptr};
};

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
  for (const OperationSum& sum : operations.sums()) {
    if (!sum.is_row) continue;
    const bool ended = sum.host.count != 0;
    table.rows.push_back(
        {std::string(sum.name), operations.path_of(sum), ended ? number(sum.host.total_ns) : Value(),
         ended ? number(sum.host.self_ns) : Value(), timed ? number(sum.device_total_ns) : Value(),
         timed ? number(sum.device_self_ns) : Value(), ended ? number(sum.host.count) : Value(),
         timed && all ? Value(static_cast<double>(sum.device_self_ns) / static_cast<double>(all)) : Value(),
         timed ? number(sum.idle_ns) : Value(), sum.tensor_cores.ratio(),
         sum.flops.calls != 0 && sum.flops.untold == 0 ? number(sum.flops.flops) : Value(), operations.site_of(sum),
         replays_graphs(run) ? number(sum.replayed) : Value()});
  }
  std::sort(table.rows.begin(), table.rows.end(),
            [](const auto& a, const auto& b) { return std::get<std::string>(a[1]) < std::get<std::string>(b[1]); });
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
