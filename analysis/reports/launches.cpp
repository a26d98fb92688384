// Launches: the calls that launch kernels, by kernel; plain launches that succeeded, outside captures.
#include <algorithm>
#include <map>

#include "analysis/kernel_rows.h"
#include "analysis/reports/list.h"

namespace gputrace {

Table launches_report(const LoadedTrace& trace) {
  Table table;
  table.section = "launches";
  table.title = "Launch calls by kernel";
  table.columns = {{"kernel", Unit::Text, Hint::Kernel},
                   {"launches", Unit::Count},
                   {"api_mean_ns", Unit::Nanos},
                   {"api_p99_ns", Unit::Nanos},
                   {"api_total_ns", Unit::Nanos},
                   {"queue_mean_ns", Unit::Nanos},
                   {"latency_mean_ns", Unit::Nanos},
                   {"latency_median_ns", Unit::Nanos},
                   {"latency_p99_ns", Unit::Nanos},
                   {"gap_mean_ns", Unit::Nanos},
                   {"short", Unit::Count}};
  table.sort = "launches";
  table.notes = {"launches = plain launch calls that succeeded, outside captures; api = time in the call on the host",
                 "queue, latency, gap and short need device timing, which is not collected in this version"};
  std::map<std::string, Distribution> kernels;
  for (const ProcessTrace& process : trace.processes) {
    for (const Function& function : process.functions) {
      if (function.launch_calls.count()) kernels[display_name(function)].merge(function.launch_calls);
    }
  }
  std::vector<std::pair<std::string, const Distribution*>> sorted;
  for (const auto& [name, calls] : kernels) sorted.emplace_back(name, &calls);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second->count() > b.second->count(); });
  for (const auto& [name, calls] : sorted) {
    table.rows.push_back({name,
                          number(calls->count()),
                          number(calls->mean()),
                          number(calls->percentile(0.99)),
                          number(calls->sum()),
                          {},
                          {},
                          {},
                          {},
                          {},
                          {}});
    if (calls->approximate()) table.columns[3].approximate = true;
  }
  return table;
}

}  // namespace gputrace
