// All reports. A report is a pure function from the loaded traces to a table: it never prints, and never looks at
// options.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/table/table.h"

namespace gputrace {

enum class Shown { Always, Filled, OnDemand };

struct ReportEntry {
  const char* section;
  Table (*make)(const LoadedTrace& trace);
  Shown shown;
};

#define GT_REPORT(section, function, shown) Table function##_report(const LoadedTrace& trace);
#include "analysis/reports/list.def"

const std::vector<ReportEntry>& all_reports();
const ReportEntry* find_report(const std::string& section);

// Sections of later versions: asked for by name, the answer says so.
bool is_planned_section(const std::string& section);

}  // namespace gputrace
