#include <fmt/format.h>

#include "analysis/render/render.h"
#include "analysis/words/csv_text.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::string raw(const Value& value) {
  if (is_null(value)) return "";
  if (const auto* text = std::get_if<std::string>(&value)) return csv_harmless(*text);
  if (const auto* parts = std::get_if<Parts>(&value)) return human_parts(*parts);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<i64>(&value)) return std::to_string(*whole);
  return fmt::format("{}", std::get<double>(value));
}

}  // namespace

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i) out += ',';
    csv_field(out, table.columns[i].key);
  }
  out += "\r\n";
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i) out += ',';
      csv_field(out, raw(row[i]));
    }
    out += "\r\n";
  }
  return out;
}

std::string render_csv(const std::vector<Finding>& findings) {
  Table table;
  for (const char* key : {"id", "severity", "section", "gain_ns", "site", "text", "fix"})
    table.columns.push_back({key, Unit::Text});
  for (const Finding& finding : findings) {
    const Value gain = finding.gain_ns ? Value(static_cast<i64>(finding.gain_ns)) : Value();
    table.rows.push_back({finding.id, std::string(severity_name(finding.severity)), finding.section, gain,
                          text_or_null(finding.site), finding.text, text_or_null(finding.fix)});
  }
  return render_csv(table);
}

}  // namespace gputrace
