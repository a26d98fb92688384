// From loaded traces to a whole report: the sections that were asked for, coverage, findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/table/choose.h"
#include "analysis/table/table.h"

namespace gputrace {

struct ReportRequest {
  std::vector<std::string> sections;  // empty: all
  std::optional<i64> device;          // what this device did, and the host's side as it is (run/one_device.h)
  std::string sort;                   // column by key or heading; empty: the section's own order
  std::vector<Filter> filters;        // rows that agree with all; a section without one of the columns is left out
  std::vector<std::string> columns;   // by key or heading, in this order; a section with none of them is left out
  std::size_t top = 0;                // rows kept in each table; 0: all
};

// Sections must exist (find_report). A sort column that a section does not have leaves its order as it is.
Report make_report(const LoadedRun& run, const ReportRequest& request);

}  // namespace gputrace
