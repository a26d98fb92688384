#include "analysis/table/table.h"

#include <algorithm>

namespace gputrace {

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::Text:
      return "text";
    case Unit::Nanos:
      return "ns";
    case Unit::Bytes:
      return "bytes";
    case Unit::Count:
      return "count";
    case Unit::Ratio:
      return "ratio";
    case Unit::BytesPerSecond:
      return "bytes/s";
    case Unit::Boolean:
      return "bool";
    case Unit::None:
      return "none";
  }
  return "none";
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::Hint:
      return "hint";
    case Severity::Warning:
      return "warning";
    case Severity::Problem:
      return "problem";
  }
  return "hint";
}

int Table::column(const std::string& key) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].key == key) return static_cast<int>(i);
  }
  return -1;
}

const Table* Report::table(const std::string& section) const {
  for (const Table& table : tables) {
    if (table.section == section) return &table;
  }
  return nullptr;
}

namespace {

double as_double(const Value& value) {
  if (const auto* whole = std::get_if<i64>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  return 0;
}

// Whether `a` stands before `b`: large before small, "a" before "b", anything before null.
bool stands_before(const Value& a, const Value& b) {
  if (is_null(a) || is_null(b)) return !is_null(a) && is_null(b);
  const auto* text_a = std::get_if<std::string>(&a);
  const auto* text_b = std::get_if<std::string>(&b);
  if (text_a && text_b) return *text_a < *text_b;
  if (text_a || text_b) return text_b != nullptr;
  const auto* whole_a = std::get_if<i64>(&a);
  const auto* whole_b = std::get_if<i64>(&b);
  if (whole_a && whole_b) return *whole_a > *whole_b;
  return as_double(a) > as_double(b);
}

}  // namespace

bool sort_table(Table& table, const std::string& key) {
  const int at = table.column(key);
  if (at < 0) return false;
  std::stable_sort(table.rows.begin(), table.rows.end(), [at](const Row& a, const Row& b) {
    return stands_before(a[static_cast<std::size_t>(at)], b[static_cast<std::size_t>(at)]);
  });
  table.sort = key;
  return true;
}

const Value& cell_of(const Table& table, const Row& row, const char* key) {
  static const Value kNull;
  const int at = table.column(key);
  return at < 0 ? kNull : row[static_cast<std::size_t>(at)];
}

std::optional<double> number_of(const Value& value) {
  if (const auto* whole = std::get_if<i64>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

Value evidence_of(const Finding& finding, const char* key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace gputrace
