// A report of one table, for tests of what renders it: hostile names, values that are not known.
#pragma once

#include "analysis/render/render.h"

namespace gputrace {

inline Report small_report() {
  Table table;
  table.section = "things";
  table.title = "Things";
  table.columns = {{"name", Unit::Text, Hint::Name},
                   {"total_ns", Unit::Nanos},
                   {"bytes", Unit::Bytes},
                   {"share", Unit::Ratio},
                   {"none", Unit::Count}};
  table.rows = {{std::string("a,\"b\"\n\x1b[2J"), i64{1'234'567}, i64{1536}, 0.25, {}},
                {std::string("c\xff"), {}, i64{0}, {}, {}}};
  Report report;
  report.coverage.processes = 2;
  report.coverage.records = 1'234'567;
  report.coverage.dropped = 3;
  report.coverage.not_collected = {{"device", "not built"}};
  report.tables = {table};
  return report;
}

}  // namespace gputrace
