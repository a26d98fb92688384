#include <nlohmann/json.hpp>

#include "analysis/render/render.h"

namespace gputrace {
namespace {

using Json = nlohmann::ordered_json;

Json object_of(const Parts& parts) {
  Json object = Json::object();
  for (const auto& [name, length] : parts.of) object[name] = length;
  return object;
}

Json as_json(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Parts>)
          return object_of(held);
        else
          return held;
      },
      value);
}

Json as_json(const Coverage& coverage) {
  Json missing = Json::array();
  for (const NotCollected& entry : coverage.not_collected)
    missing.push_back({{"what", entry.what}, {"why", entry.why}});
  return {{"processes", coverage.processes},
          {"records", coverage.records},
          {"dropped", coverage.dropped},
          {"unknown_records", coverage.unknown_records},
          {"truncated", coverage.truncated},
          {"device_timing", coverage.device_timing},
          {"complete", coverage.missing.empty()},
          {"missing", coverage.missing},
          {"not_collected", missing},
          {"remarks", coverage.remarks}};
}

Json as_json(const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) {
    Json entry = {{"key", column.key}, {"unit", unit_name(column.unit)}};
    if (column.approximate) entry["approximate"] = true;
    columns.push_back(std::move(entry));
  }
  Json rows = Json::array();
  for (const Row& row : table.rows) {
    Json cells = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) cells[table.columns[i].key] = as_json(row[i]);
    rows.push_back(std::move(cells));
  }
  Json section = {{"title", table.title}, {"columns", columns}, {"rows", rows}, {"notes", table.notes}};
  if (table.total_rows) section["total_rows"] = table.total_rows;
  return section;
}

Json as_json(const Finding& finding) {
  Json evidence = Json::object();
  for (const auto& [key, value] : finding.evidence) evidence[key] = as_json(value);
  return {{"id", finding.id},
          {"severity", severity_name(finding.severity)},
          {"section", finding.section},
          {"text", finding.text},
          {"fix", finding.fix.empty() ? Json(nullptr) : Json(finding.fix)},
          {"site", finding.site.empty() ? Json(nullptr) : Json(finding.site)},
          {"gain_ns_per_step", finding.gain_ns_per_step ? Json(*finding.gain_ns_per_step) : Json(nullptr)},
          {"evidence", evidence}};
}

}  // namespace

std::string render_json(const Report& report) {
  Json sections = Json::object();
  for (const Table& table : report.tables) sections[table.section] = as_json(table);
  Json findings = Json::array();
  for (const Finding& finding : report.findings) findings.push_back(as_json(finding));
  const Json whole = {{"schema", "gputrace-report/1"},
                      {"coverage", as_json(report.coverage)},
                      {"sections", sections},
                      {"findings", findings}};
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gputrace
