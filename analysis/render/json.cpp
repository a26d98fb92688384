#include <algorithm>
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
  Json section = {{"title", table.title}, {"columns", columns}, {"rows", Json::array()}, {"notes", table.notes}};
  if (table.total_rows) section["total_rows"] = table.total_rows;
  return section;
}

// Writes what one object of everything would be as text, but row by row: that object takes many times the memory of its text.
class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  // A value `depth` levels within the whole; line ends within texts are escaped, so each line of it only moves to the right.
  void value(const Json& json, int depth) {
    const std::string text = json.dump(indent_, ' ', false, Json::error_handler_t::replace);
    const std::size_t more = static_cast<std::size_t>(indent_ < 0 ? 0 : indent_ * depth);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
      out_.append(text, at, end + 1 - at);
      if (text[end] == '\n') out_.append(more, ' ');
      at = end + 1;
    }
  }
  void line(int depth) {
    if (indent_ >= 0) out_ += '\n' + std::string(static_cast<std::size_t>(indent_ * depth), ' ');
  }
  // The next member of an object.
  void key(const std::string& name, int depth, bool first) {
    if (!first) out_ += ',';
    line(depth);
    value(name, depth);
    out_ += indent_ < 0 ? ":" : ": ";
  }
  void raw(const char* text) { out_ += text; }

  void section(const Table& table, int depth) {
    const Json frame = as_json(table);
    raw("{");
    bool first = true;
    for (const auto& [name, member] : frame.items()) {
      key(name, depth + 1, first);
      first = false;
      if (name == "rows")
        rows(table, depth + 1);
      else
        value(member, depth + 1);
    }
    line(depth);
    raw("}");
  }
  std::string take() { return std::move(out_); }

 private:
  void rows(const Table& table, int depth) {
    raw("[");
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const Row& row = table.rows[r];
      Json cells = Json::object();
      for (std::size_t i = 0; i < row.size(); ++i) cells[table.columns[i].key] = as_json(row[i]);
      if (r) raw(",");
      line(depth + 1);
      value(cells, depth + 1);
    }
    if (!table.rows.empty()) line(depth);
    raw("]");
  }

  const int indent_;
  std::string out_;
};

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

std::string render_json(const Report& report, int indent, const char* schema) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) findings.push_back(as_json(finding));
  Writer out(indent);
  out.raw("{");
  out.key("schema", 1, true);
  out.value(schema, 1);
  out.key("coverage", 1, false);
  out.value(as_json(report.coverage), 1);
  out.key("sections", 1, false);
  out.raw("{");
  for (std::size_t i = 0; i < report.tables.size(); ++i) {
    out.key(report.tables[i].section, 2, i == 0);
    out.section(report.tables[i], 2);
  }
  if (!report.tables.empty()) out.line(1);
  out.raw("}");
  out.key("findings", 1, false);
  out.value(findings, 1);
  out.line(0);
  out.raw("}\n");
  return out.take();
}

}  // namespace gputrace
