// Synchronization: calls that wait for the device, at driver level (a runtime call that waits contains one of them).
#include <map>

#include "analysis/reports/list.h"

namespace gputrace {

Table sync_report(const LoadedTrace& trace) {
  std::map<std::string, std::pair<u64, u64>> rows;
  for (const ProcessTrace& process : trace.processes) {
    for (const CallFacts& call : process.calls) {
      if (call.waits == 0) continue;
      rows[call.name].first += call.waits;
      rows[call.name].second += call.wait_ns;
    }
  }
  Table table;
  table.section = "sync";
  table.title = "Waiting for the device, by total time";
  table.columns = {{"call", Unit::Text, Hint::Name},
                   {"site", Unit::Text},
                   {"count", Unit::Count},
                   {"total_ns", Unit::Nanos},
                   {"gpu_idle_ns", Unit::Nanos}};
  table.notes = {
      "host time in the calls; the site needs stacks and gpu_idle needs device timing, which are not collected in this "
      "version"};
  for (const auto& [name, sums] : rows) table.rows.push_back({name, {}, number(sums.first), number(sums.second), {}});
  sort_table(table, "total_ns");
  return table;
}

}  // namespace gputrace
