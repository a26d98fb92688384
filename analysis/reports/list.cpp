#include "analysis/reports/list.h"

namespace gputrace {

std::span<const SectionReport* const> all_reports() {
  static constexpr const SectionReport* kReports[] = {
#define GT_REPORT(room, report) &report##_report,
#include "analysis/reports/list.def"
  };
  return kReports;
}

const SectionReport* find_report(const std::string& section) {
  for (const SectionReport* report : all_reports()) {
    if (section == report->section) return report;
  }
  return nullptr;
}

}  // namespace gputrace
