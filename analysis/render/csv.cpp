#include <fmt/format.h>

#include "analysis/render/render.h"
#include "analysis/words/human.h"
#include "analysis/words/safe_text.h"

namespace gputrace {
namespace {

void append_field(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

// A spreadsheet takes a text that begins so for a formula, and names come from the traced program: they get a mark that
// spreadsheets read as "text", and no byte that is a control character.
std::string harmless(const std::string& text) {
  std::string safe = safe_text(text);
  if (!safe.empty() && std::string_view("=+-@").find(safe[0]) != std::string_view::npos) safe.insert(0, 1, '\'');
  return safe;
}

std::string raw(const Value& value) {
  if (is_null(value)) return "";
  if (const auto* text = std::get_if<std::string>(&value)) return harmless(*text);
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
    append_field(out, table.columns[i].key);
  }
  out += "\r\n";
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i) out += ',';
      append_field(out, raw(row[i]));
    }
    out += "\r\n";
  }
  return out;
}

}  // namespace gputrace
