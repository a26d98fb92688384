// Synchronization: calls that wait for the device, at driver level (a runtime call that waits contains one of them).
// What a wait costs is not how long it took but how long a device had nothing to do meanwhile.
#include <map>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

void fill_sync(const LoadedRun& run, Table& table) {
  struct Sum {
    u64 waits = 0, total_ns = 0, gaps = 0, idle_ns = 0;
    NamedAmounts sites;
  };
  std::map<std::string, Sum> rows;
  const FileNames files(run);
  const bool timed = device_collected(run);
  for (const ProcessTrace& process : run.processes) {
    std::map<u16, std::string> names;
    for (const CallFacts& call : process.calls) {
      names[call.id] = call.name;
      if (call.waits == 0) continue;
      rows[call.name].waits += call.waits;
      rows[call.name].total_ns += call.wait_ns;
      add_sites(process, call.waits_by_origin, files, rows[call.name].sites);
    }
    for (const DeviceTimes& device : process.device.devices) {
      for (const IdleByCall& each : device.causes_by_call) {
        if (each.cause != IdleCause::Synchronization || names.count(each.call) == 0) continue;
        rows[names[each.call]].gaps += each.sum.count;
        rows[names[each.call]].idle_ns += each.sum.total_ns;
      }
    }
  }
  if (timed) table.title = "Waiting for the device, by the idle time it caused";
  if (!timed) table.notes.push_back("gpu idle is not known: " + why_no_device_times(run));
  for (const auto& [name, sum] : rows) {
    table.rows.push_back({name, text_or_null(sum.sites.most()), number(sum.waits), number(sum.total_ns),
                          timed ? number(sum.idle_ns) : Value(), timed ? number(sum.gaps) : Value()});
  }
  sort_table(table, "total_ns");
  if (timed) sort_table(table, "gpu_idle_ns");
  table.sort = timed ? "gpu_idle_ns" : "total_ns";
}

}  // namespace

extern constexpr SectionReport sync_report = {
    .section = "sync",
    .title = "Waiting for the device, by total time",
    .answers = "synchronizing calls: count, time, and the device idle time that they cause (`gpu_idle_ns`)",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"call", Unit::Text, Hint::Name},
                {"site", Unit::Text},
                {"count", Unit::Count},
                {"total_ns", Unit::Nanos},
                {"gpu_idle_ns", Unit::Nanos},
                extra({"gaps", Unit::Count})},
    .notes = {"total = host time in the calls; gpu_idle = of it, while the device of the thread's next operation was "
              "idle; gaps = in "
              "how many; site = the line that waited longest in them"},
    .fill = fill_sync,
    .of_all_devices = true,
};

}  // namespace gputrace
