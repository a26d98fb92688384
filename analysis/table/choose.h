// What a reader asks of a table: columns by their key or their heading, rows by a condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "base/result.h"

namespace gputrace {

// "queue_mean_ns" as a terminal has it: "queue mean". Of two columns of a table with one heading the ratio says that it is one.
std::string heading_of(std::string key);
std::string heading_of(const std::vector<Column>& columns, std::size_t column);

// The column that a word means: its key, or its heading, in any case. -1: none.
int find_column(const std::vector<Column>& columns, const std::string& word);

// "kernel~gemm", "total_ns>=10us", "share>5%", "tensor_core=no": a column, an operator, a value.
//   ~ and !~: its text holds the value, in any case · = and !=: text, number or yes/no · < <= > >=: numbers, text by the
//   alphabet. A value may carry a unit of its column's kind. What is not known agrees with no condition but `=` and `!=`
//   with an empty value.
struct Filter {
  enum class How { Holds, HoldsNot, Is, IsNot, Less, AtMost, More, AtLeast };
  std::string column;
  How how = How::Holds;
  std::string value;
};

struct FilterError {
  std::string message;
};
Result<Filter, FilterError> parse_filter(const std::string& text);

// Nothing: it can be asked of such a column. Else what is wrong with the value.
std::optional<std::string> wrong_value(const Filter& filter, const Column& column);

// Keeps the rows that agree. The column must be there (find_column).
void keep_rows(Table& table, const Filter& filter);

// Keeps these columns, in this order, and shows them on a terminal too; words that name none are passed over. False:
// none is left, the table is as it was.
bool keep_columns(Table& table, const std::vector<std::string>& words);

}  // namespace gputrace
