// API: every intercepted call by its documented name and level.
#include <algorithm>
#include <map>

#include "analysis/reports/section_report.h"

namespace gputrace {
namespace {

void fill_api(const LoadedRun& run, Table& table) {
  struct CallRow {
    u64 calls = 0, errors = 0, self_ns = 0;
    Distribution durations;
  };
  std::map<std::pair<std::string, std::string>, CallRow> rows;
  for (const ProcessTrace& process : run.processes) {
    for (const CallFacts& call : process.calls) {
      if (call.calls == 0) continue;
      CallRow& row = rows[{call.name, call.level}];
      row.calls += call.calls;
      row.errors += call.errors;
      row.self_ns += call.self_ns;
      row.durations.merge(call.durations);
    }
  }
  for (const auto& [key, row] : rows) {
    table.rows.push_back({key.first, key.second, number(row.calls), number(row.errors), number(row.durations.sum()),
                          number(row.self_ns), number(row.durations.mean()), number(row.durations.percentile(0.99)),
                          number(row.durations.max())});
    if (row.durations.approximate()) table.columns[7].approximate = true;
  }
  sort_table(table, "total_ns");
}

}  // namespace

extern constexpr SectionReport api_report = {
    .section = "api",
    .title = "CUDA calls by total time",
    .answers = "call and level: calls, errors, total and self time, mean, p99, max",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"call", Unit::Text, Hint::Name},
                {"level", Unit::Text},
                {"calls", Unit::Count},
                {"errors", Unit::Count},
                {"total_ns", Unit::Nanos},
                {"self_ns", Unit::Nanos},
                {"mean_ns", Unit::Nanos},
                {"p99_ns", Unit::Nanos},
                {"max_ns", Unit::Nanos}},
    .notes =
        {"host time in the calls; self = without calls nested in it (a runtime call contains the driver calls that it "
         "makes), so only self adds up"},
    .fill = fill_api,
    .of_all_devices = true,
};

}  // namespace gputrace
