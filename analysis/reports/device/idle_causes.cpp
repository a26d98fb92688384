// Why the devices were idle: the parts of all gaps by cause; together they are all idle time.
#include <algorithm>
#include <map>

#include "analysis/facts/kind_names.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

const char* meaning(IdleCause cause) {
  switch (cause) {
    case IdleCause::Unknown:
      return "launched in time, and begun many times later than usual (other work on the device?), or it could not be "
             "told";
    case IdleCause::Launch:
      return "the launching thread was in launch calls";
    case IdleCause::Host:
      return "it was in no CUDA call";
    case IdleCause::Synchronization:
      return "it was in a wait, and the device had nothing left to do for it";
    case IdleCause::Polling:
      return "it asked again and again whether the device was done";
    case IdleCause::Copy:
      return "it was in a copy or memset call";
    case IdleCause::Allocation:
      return "it allocated or freed memory";
    case IdleCause::ModuleLoad:
      return "it loaded or compiled machine code";
    case IdleCause::Library:
      return "it was in a call of a vendor's library, outside of CUDA calls";
    case IdleCause::QueueFull:
      return "it was in a launch call that waited for room in its stream's queue";
    case IdleCause::OtherStream:
      return "launched in time: the next operation waited for another stream";
    case IdleCause::Peer:
      return "launched in time: the next operation waited for one of another device";
    case IdleCause::HostFunction:
      return "launched in time: it waited for a host function (inferred: its end is not measured)";
    case IdleCause::MemoryValue:
      return "launched in time: it waited for a value in memory (inferred: its end is not measured)";
    case IdleCause::GraphInternal:
      return "between two nodes of one graph replay";
    case IdleCause::Collection:
      return "the profiler itself";
    case IdleCause::Dispatch:
      return "launched in time: the device's way from one operation to the next";
  }
  return "";
}

struct CauseSum {
  u64 count = 0, total_ns = 0;
  std::map<std::string, u64> calls;  // time by the call that is to blame
};

Value worst_call(const CauseSum& sum) {
  const auto worst = std::max_element(sum.calls.begin(), sum.calls.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  return worst == sum.calls.end() ? Value() : Value(worst->first);
}

void fill_idle_causes(const LoadedRun& run, Table& table) {
  std::map<IdleCause, CauseSum> sums;
  for (const ProcessTrace& process : run.processes) {
    std::map<u16, std::string> names;
    for (const CallFacts& call : process.calls) names[call.id] = call.name;
    for (const DeviceTimes& device : process.device.devices) {
      for (unsigned i = 0; i < kIdleCauses; ++i) {
        if (device.causes[i].count == 0) continue;
        CauseSum& sum = sums[static_cast<IdleCause>(i)];
        sum.count += device.causes[i].count, sum.total_ns += device.causes[i].total_ns;
      }
      for (const IdleByCall& each : device.causes_by_call) {
        const auto name = names.find(each.call);
        if (name != names.end()) sums[each.cause].calls[name->second] += each.sum.total_ns;
      }
    }
  }
  const DeviceTotals totals = device_totals(run);
  for (const auto& [cause, sum] : sums) {
    const auto share = ratio(sum.total_ns, totals.idle_ns);
    table.rows.push_back({std::string(idle_cause_name(cause)), number(sum.total_ns), share ? Value(*share) : Value(),
                          number(sum.count), mean(sum.total_ns, sum.count), worst_call(sum),
                          std::string(meaning(cause))});
  }
  sort_table(table, "total_ns");
}

}  // namespace

extern constexpr SectionReport idle_causes_report = {
    .section = "idle-causes",
    .title = "Why the devices were idle",
    .answers =
        "why devices were idle: `host`, `launch`, `synchronization`, `polling`, `copy`, `allocation`, `module load`, "
        "`library`, `queue full`, `other stream`, `peer`, `host function`, `memory value`, `dispatch`, `inside a "
        "graph`, "
        "`profiler`, `unknown`; each instant of a gap has one ([definitions](decisions/0071-a-gap-is-divided.md))",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"cause", Unit::Text},
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"count", Unit::Count},
                extra({"mean_ns", Unit::Nanos}),
                extra({"worst_call", Unit::Text}),
                extra({"meaning", Unit::Text, Hint::Prose})},
    .notes =
        {"share = of all idle time; idle = between a device's first and last operation, no operation on it; count = "
         "gaps that have such a part; each instant has one cause, by what the launching thread did then and what "
         "the device waited for"},
    .fill = fill_idle_causes,
};

}  // namespace gputrace
