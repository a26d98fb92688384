// What a report produces: tables whose columns carry units and display hints, and findings.
// Generic renderers (render/) turn them into text, JSON and CSV; a report itself never formats and never prints.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/types.h"

namespace gputrace {

// What a whole consists of, largest first: an object in JSON, "host 390us, copy 10us" elsewhere.
struct Parts {
  std::vector<std::pair<std::string, i64>> of;
  bool operator==(const Parts&) const = default;
};

// One cell. monostate is "not known": null in JSON, empty in CSV, "-" in text; never 0.
using Value = std::variant<std::monostate, bool, i64, double, std::string, Parts>;

inline bool is_null(const Value& value) { return std::holds_alternative<std::monostate>(value); }
// Sizes and counts are unsigned in the trace and signed in a table: what does not fit is held at the largest.
inline Value number(u64 value) {
  constexpr u64 kMax = static_cast<u64>(std::numeric_limits<i64>::max());
  return static_cast<i64>(value < kMax ? value : kMax);
}
inline Value number(i64 value) { return value; }
// Not known where it is empty.
inline Value text_or_null(std::string text) { return text.empty() ? Value() : Value(std::move(text)); }
// To the nearest whole unit; not known where a cell cannot hold it.
inline Value rounded(long double value) {
  return std::fabs(value) < 9.2e18L ? Value(static_cast<i64>(std::llround(value))) : Value();
}
// The same of a mean; not known where there is nothing to divide by.
inline Value mean(u64 sum, u64 count) {
  return count ? number(sum / count + (sum % count + count / 2) / count) : Value();
}

enum class Unit { Text, Nanos, Bytes, Count, Ratio, BytesPerSecond, Boolean, None };
const char* unit_name(Unit unit);

enum class Hint {
  Normal,
  Name,    // long text: takes the width that is left, and is shortened first
  Kernel,  // such a text that is a function's signature: its parameters go first
  Site,    // such a text that is a place in the source: its line stays
  Prose,   // a sentence: takes the width too; as the last column it goes on over several lines, it is never cut
  Tree,    // takes the width too; set in by the row's "level"
  Detail,  // not in the terminal table; in JSON and CSV always
  Handle,  // a number or text that sorts as text
  Large,   // a count of which a terminal shows four digits and a prefix: 989.1 T
};

struct Column {
  std::string key;
  Unit unit = Unit::Text;
  Hint hint = Hint::Normal;
  bool approximate = false;  // values are within 2 % of the exact ones
};

using Row = std::vector<Value>;

struct Table {
  std::string section;
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::string sort;  // column that the rows are ordered by, largest first; empty: they have an order of their own
  // Denominators, and why a column has no values. A clause "NAME = …", up to the next "; ", speaks of the column of
  // that name, in words or as its key: a terminal that has no room for the column leaves the clause out.
  std::vector<std::string> notes;
  std::size_t general_notes = 0;  // of them, first: what holds for every trace
  std::size_t total_rows = 0;     // before --top cut them; 0: nothing was cut

  // Index of a column, or -1.
  int column(const std::string& key) const;
};

// A cell by its column's key; null where there is no such column.
const Value& cell_of(const Table& table, const Row& row, const char* key);
// The number in it; nothing where it is null or no number.
std::optional<double> number_of(const Value& value);

enum class Severity { Hint, Warning, Problem };
const char* severity_name(Severity severity);

struct Finding {
  std::string id;
  Severity severity = Severity::Hint;
  std::string section;
  std::string text;
  std::string fix;  // what to do, in one line; empty where nothing is to be done
  std::vector<std::pair<std::string, Value>> evidence;
  // Device idle or busy time that would be saved, at most; 0: nothing can be said. Also in the evidence, as gain_ns.
  u64 gain_ns = 0;
  std::string site = {};  // "train.py:88 step": the line of the program that has most of it; empty: not known
  std::optional<u64> gain_ns_per_step = {};  // nothing: no steps are known, or no gain
  bool ended_it = false;                     // a program ended by it: before all others
};

// Null: it has no such evidence.
Value evidence_of(const Finding& finding, const char* key);

// What the numbers rest on; first in every output.
struct NotCollected {
  std::string what;
  std::string why;
};
struct Coverage {
  u64 processes = 0;
  u64 records = 0;  // stored and read
  u64 dropped = 0;  // seen and not stored, all reasons
  u64 unknown_records = 0;
  bool truncated = false;              // a file ends in the middle, lost chunks, or was never ended
  std::string device_timing = "none";  // "cupti" once device times are collected
  // Why something is missing that was to be there, one clause each: dropped, killed, device records that did not come …
  // Empty: the traces are complete.
  std::vector<std::string> missing;
  std::vector<NotCollected> not_collected;
  std::vector<std::string> sources;  // the files
  std::vector<std::string> remarks;  // what else limits the numbers, one sentence each
};

struct Report {
  Coverage coverage;
  std::vector<Table> tables;
  std::vector<Finding> findings;
  std::optional<Nanos> origin;  // a terminal tells instants from here on; nothing: the hosts' clocks are their own

  const Table* table(const std::string& section) const;
};

// Orders by a column, largest first (text: alphabetically), null last; stable. False: no such column.
bool sort_table(Table& table, const std::string& key);

}  // namespace gputrace
