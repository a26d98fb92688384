// All reports. NAME_report(run) makes one table; a report says of itself what it is (section_report.h). No report
// includes this: a new row compiles the list anew, and not every report.
#pragma once

#include <span>
#include <string>

#include "analysis/reports/section_report.h"

namespace gputrace {

#define GT_REPORT(room, report) extern const SectionReport report##_report;
#include "analysis/reports/list.def"

std::span<const SectionReport* const> all_reports();
// nullptr: there is no such section.
const SectionReport* find_report(const std::string& section);

}  // namespace gputrace
