#include "analysis/reports/section_report.h"

#include <stdexcept>

namespace gputrace {

Table SectionReport::operator()(const LoadedRun& run) const {
  Table table;
  table.section = section;
  table.title = title;
  for (const SectionColumn& column : columns) table.columns.push_back({column.key, column.unit, column.hint});
  table.notes.assign(notes.begin(), notes.end());
  table.general_notes = notes.size();
  fill(run, table);
  for (const Row& row : table.rows) {
    if (row.size() != table.columns.size())
      throw std::logic_error(std::string("section ") + section + ": a row of " + std::to_string(row.size()) +
                             " cells under " + std::to_string(table.columns.size()) + " columns");
  }
  return table;
}

}  // namespace gputrace
