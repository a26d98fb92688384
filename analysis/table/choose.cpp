#include "analysis/table/choose.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace gputrace {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Suffix {
  const char* word;
  double factor;
};

// Those that a value of this kind may have; nothing: plain numbers alone.
std::vector<Suffix> suffixes_of(Unit unit) {
  constexpr double kKibi = 1024, kMebi = kKibi * kKibi, kGibi = kMebi * kKibi, kTebi = kGibi * kKibi;
  switch (unit) {
    case Unit::Nanos:
      return {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    case Unit::Bytes:
    case Unit::BytesPerSecond:
      return {{"k", kKibi},     {"m", kMebi},     {"g", kGibi},     {"t", kTebi}, {"kib", kKibi},
              {"mib", kMebi},   {"gib", kGibi},   {"tib", kTebi},   {"b", 1},     {"kib/s", kKibi},
              {"mib/s", kMebi}, {"gib/s", kGibi}, {"tib/s", kTebi}, {"b/s", 1}};
    case Unit::Ratio:
      return {{"%", 0.01}};
    default:
      return {};
  }
}

// A number with a unit of that kind, in base units.
std::optional<double> number_in(const std::string& text, Unit unit) {
  char* rest = nullptr;
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  const double number = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str()) return std::nullopt;
  while (*rest == ' ') ++rest;
  if (*rest == 0) return number;
  for (const Suffix& suffix : suffixes_of(unit)) {
    if (lower(rest) == suffix.word) return number * suffix.factor;
  }
  return std::nullopt;
}

std::optional<std::string> searchable_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "yes" : "no";
  if (const auto* whole = std::get_if<i64>(&value)) return std::to_string(*whole);
  return std::nullopt;
}

template <typename T>
bool compare(Filter::How how, const T& own, const T& wanted) {
  switch (how) {
    case Filter::How::Is:
      return own == wanted;
    case Filter::How::IsNot:
      return own != wanted;
    case Filter::How::Less:
      return own < wanted;
    case Filter::How::AtMost:
      return own <= wanted;
    case Filter::How::More:
      return own > wanted;
    default:
      return own >= wanted;
  }
}

bool agrees(const Value& value, Unit unit, const Filter& filter) {
  const bool holds = filter.how == Filter::How::Holds, holds_not = filter.how == Filter::How::HoldsNot;
  if (is_null(value)) {
    if (!filter.value.empty()) return false;
    return filter.how == Filter::How::Is;
  }
  const auto text = searchable_text(value);
  if (holds || holds_not) return text && (lower(*text).find(lower(filter.value)) != std::string::npos) == holds;
  if (filter.value.empty()) return filter.how == Filter::How::IsNot;
  const auto own = number_of(value);
  const auto wanted = number_in(filter.value, unit);
  if (own && wanted) return compare(filter.how, *own, *wanted);
  std::string word = filter.value;
  if (std::holds_alternative<bool>(value)) word = word == "true" ? "yes" : word == "false" ? "no" : word;
  return text && compare(filter.how, *text, word);
}

}  // namespace

std::string heading_of(std::string key) {
  for (const char* suffix : {"_ns", "_bytes", "_ratio"}) {
    const std::string tail = suffix;
    if (key.size() > tail.size() && key.compare(key.size() - tail.size(), tail.size(), tail) == 0)
      key.resize(key.size() - tail.size());
  }
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string heading_of(const std::vector<Column>& columns, std::size_t column) {
  std::string own = heading_of(columns[column].key);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c == column || columns[column].unit != Unit::Ratio) continue;
    if (heading_of(columns[c].key) == own) return own + " ratio";
  }
  return own;
}

int find_column(const std::vector<Column>& columns, const std::string& word) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].key == word) return static_cast<int>(i);
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (lower(heading_of(columns, i)) == lower(word)) return static_cast<int>(i);
  }
  return -1;
}

Result<Filter, FilterError> parse_filter(const std::string& text) {
  using How = Filter::How;
  static constexpr std::pair<const char*, How> kOperators[] = {
      {"!~", How::HoldsNot}, {"!=", How::IsNot}, {"<=", How::AtMost}, {">=", How::AtLeast}, {"==", How::Is},
      {"~", How::Holds},     {"=", How::Is},     {"<", How::Less},    {">", How::More}};
  const std::size_t at = text.find_first_of("~!=<>");
  if (at == std::string::npos || at == 0)
    return Failure{FilterError{"'" + text + "' is no condition: COLUMN~TEXT, or with one of !~ = != < <= > >="}};
  for (const auto& [sign, how] : kOperators) {
    const std::string word = sign;
    if (text.compare(at, word.size(), word) != 0) continue;
    Filter filter;
    filter.column = text.substr(0, text.find_last_not_of(' ', at - 1) + 1);
    filter.how = how;
    const std::size_t value = text.find_first_not_of(' ', at + word.size());
    filter.value = value == std::string::npos ? "" : text.substr(value);
    return filter;
  }
  return Failure{FilterError{"'" + text + "': '!' stands before ~ or ="}};
}

std::optional<std::string> wrong_value(const Filter& filter, const Column& column) {
  const bool text = column.unit == Unit::Text || column.unit == Unit::Boolean || column.unit == Unit::None;
  const bool holds = filter.how == Filter::How::Holds || filter.how == Filter::How::HoldsNot;
  if (text || holds || filter.value.empty() || number_in(filter.value, column.unit)) return std::nullopt;
  std::string units;
  for (const Suffix& suffix : suffixes_of(column.unit)) units += (units.empty() ? "" : " ") + std::string(suffix.word);
  return "'" + filter.value + "' is no number" + (units.empty() ? "" : " (units: " + units + ")");
}

void keep_rows(Table& table, const Filter& filter) {
  const auto at = static_cast<std::size_t>(find_column(table.columns, filter.column));
  const Unit unit = table.columns[at].unit;
  table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(),
                                  [&](const Row& row) { return !agrees(row[at], unit, filter); }),
                   table.rows.end());
}

bool keep_columns(Table& table, const std::vector<std::string>& words) {
  std::vector<std::size_t> chosen;
  for (const std::string& word : words) {
    const int at = find_column(table.columns, word);
    if (at >= 0) chosen.push_back(static_cast<std::size_t>(at));
  }
  if (chosen.empty()) return false;
  std::vector<Column> columns;
  for (const std::size_t at : chosen) {
    columns.push_back(table.columns[at]);
    if (columns.back().hint == Hint::Detail) columns.back().hint = Hint::Name;
  }
  for (Row& row : table.rows) {
    Row kept;
    for (const std::size_t at : chosen) kept.push_back(row[at]);
    row = std::move(kept);
  }
  table.columns = std::move(columns);
  return true;
}

}  // namespace gputrace
