#include "analysis/report.h"

#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/reports/list.h"
#include "analysis/run/needs.h"
#include "analysis/run/one_device.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

void keep_device(Table& table, i64 device) {
  const int at = table.column("device");
  if (at < 0) return;
  const auto other = [&](const Row& row) {
    const auto* value = std::get_if<i64>(&row[static_cast<std::size_t>(at)]);
    return !value || *value != device;
  };
  table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(), other), table.rows.end());
}

// Rows, order and columns as asked for. False: it has not what is asked of it.
bool choose(Table& table, const ReportRequest& request) {
  for (const Filter& filter : request.filters) {
    if (find_column(table.columns, filter.column) < 0) return false;
    keep_rows(table, filter);
  }
  const int sort = request.sort.empty() ? -1 : find_column(table.columns, request.sort);
  if (sort >= 0) sort_table(table, table.columns[static_cast<std::size_t>(sort)].key);
  return request.columns.empty() || keep_columns(table, request.columns);
}

// A part that was asked for and could not be collected has already said why.
void add_missing(Coverage& coverage, const char* section, const std::string& why) {
  auto& missing = coverage.not_collected;
  const auto same = [section](const NotCollected& known) { return known.what == section; };
  if (std::none_of(missing.begin(), missing.end(), same)) missing.push_back({section, why});
}

}  // namespace

Report make_report(const LoadedRun& whole, const ReportRequest& request) {
  const bool several = request.device && uses_several_devices(whole);
  const LoadedRun& run = several ? of_one_device(whole, *request.device) : whole;
  Report report;
  report.coverage = coverage_of(run);
  std::string of_all_devices;
  report.origin = run.origin;
  const auto asked_for = [&wanted = request.sections](const char* section) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), section) != wanted.end();
  };
  const bool all_reasons = asked_for("quality");  // it names all that is not there
  for (const SectionReport* section : all_reports()) {
    if (!asked_for(section->section)) {
      if (const auto why = all_reasons ? why_not_met(section->needs, run) : std::nullopt)
        add_missing(report.coverage, section->section, *why);
      continue;
    }
    if (const auto why = why_not_met(section->needs, run)) {
      add_missing(report.coverage, section->section, *why);
      continue;
    }
    Table table = (*section)(run);
    if (several && section->of_all_devices) of_all_devices += (of_all_devices.empty() ? "" : ", ") + table.section;
    if (request.device) keep_device(table, *request.device);
    if (!choose(table, request)) continue;
    if (request.top && table.rows.size() > request.top) {
      table.total_rows = table.rows.size();
      table.rows.resize(request.top);
    }
    report.tables.push_back(std::move(table));
  }
  report.findings = find_findings(run);
  if (!run.only_steps.empty())
    report.coverage.remarks.push_back("of " + run.only_steps +
                                      " alone: calls that began and operations that started in that time");
  if (several)
    report.coverage.remarks.push_back("of device " + std::to_string(*request.device) +
                                      " alone; calls, their times and findings about them are of all devices" +
                                      (of_all_devices.empty() ? "" : ", and so are the sections " + of_all_devices));
  return report;
}

}  // namespace gputrace
