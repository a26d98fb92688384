#include "analysis/report.h"

#include <algorithm>

#include "analysis/facts/asked_for.h"
#include "analysis/facts/library_rows.h"
#include "analysis/findings/findings.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/reports/list.h"
#include "analysis/run/device_time.h"
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

// About the process and the collection itself: there whatever was collected.
bool always_there(const std::string& section) {
  return section == "overview" || section == "run" || section == "quality" || section == "quality-notes" ||
         section == "devices";
}

}  // namespace

bool api_collected(const LoadedTrace& trace) {
  for (const ProcessTrace& process : trace.processes) {
    if (asked_for(process, collect::kApi).value_or(true)) return true;
  }
  return false;
}

namespace {

bool needs_libraries(const std::string& section) { return section == "libs" || section == "comm"; }
bool needs_code(const std::string& section) { return section == "tensor-cores" || section == "tensor-core-misses"; }
bool needs_device(const std::string& section) {
  return section == "idle" || section == "idle-causes" || section == "streams" || section == "queue" ||
         section == "queue-timeline";
}

}  // namespace

Report make_report(const LoadedTrace& trace, const ReportRequest& request) {
  Report report;
  report.coverage = coverage_of(trace);
  report.origin = trace.origin;
  const bool api = api_collected(trace), device = device_collected(trace);
  for (const ReportEntry& entry : all_reports()) {
    const auto& wanted = request.sections;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), entry.section) == wanted.end()) continue;
    if (!api && !always_there(entry.section)) {
      report.coverage.not_collected.push_back(
          {entry.section, "calls were not collected (GPUTRACE_COLLECT without api)"});
      continue;
    }
    if (needs_device(entry.section) && !device) {
      report.coverage.not_collected.push_back({entry.section, "needs device timing: " + why_no_device_times(trace)});
      continue;
    }
    if (entry.section == std::string("environment") && !why_no_environment(trace).empty()) {
      const NotCollected entry_told{entry.section, why_no_environment(trace)};
      const auto same = [&](const NotCollected& known) { return known.what == entry_told.what; };
      auto& told = report.coverage.not_collected;
      if (std::none_of(told.begin(), told.end(), same)) told.push_back(entry_told);
      continue;
    }
    if (needs_code(entry.section) && !code_collected(trace)) {
      report.coverage.not_collected.push_back({entry.section, why_no_code(trace)});
      continue;
    }
    if (needs_libraries(entry.section) && !libraries_collected(trace)) {
      report.coverage.not_collected.push_back(
          {entry.section, "calls of vendor libraries were not collected (GPUTRACE_COLLECT without libs)"});
      continue;
    }
    Table table = entry.make(trace);
    if (request.device) keep_device(table, *request.device);
    if (!request.sort.empty()) sort_table(table, request.sort);
    if (request.top && table.rows.size() > request.top) {
      table.total_rows = table.rows.size();
      table.rows.resize(request.top);
    }
    report.tables.push_back(std::move(table));
  }
  report.findings = find_findings(trace);
  return report;
}

}  // namespace gputrace
