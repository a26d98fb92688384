#include "analysis/reports/list.h"

namespace gputrace {

const std::vector<ReportEntry>& all_reports() {
  static const std::vector<ReportEntry> kReports = {
#define GT_REPORT(section, function, shown) {section, function##_report, Shown::shown},
#include "analysis/reports/list.def"
  };
  return kReports;
}

const ReportEntry* find_report(const std::string& section) {
  for (const ReportEntry& report : all_reports()) {
    if (section == report.section) return &report;
  }
  return nullptr;
}

bool is_planned_section(const std::string& section) {
  for (const char* planned : {"steps", "ops", "input", "input-ops", "ranks", "io"}) {
    if (section == planned) return true;
  }
  return false;
}

}  // namespace gputrace
