// parquet_numbers FILE ROWS: a Parquet file whose columns need each width of bits, for readers that nobody here wrote: tests/e2e/exports/test_parquet.py knows the same formula.
//   wN: each value has N random bits over the one before it, wrapping around; jN: three bits, each 997th N; oN: jN, with nothing in each seventh row.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "analysis/export/parquet_file.h"

namespace {

using namespace gputrace;

u64 bits_of(u64 row, unsigned width) {
  const u64 mixed = (row + 1) * 0x9e3779b97f4a7c15ull ^ row << 17;
  return width == 0 ? 0 : mixed >> (64 - width);
}

u64 small_step(u64 row, unsigned width) { return row % 997 == 0 ? bits_of(row, width) : bits_of(row, 3); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  constexpr unsigned kWidths = 65;
  std::deque<std::string> names;
  std::vector<ParquetColumn> columns;
  for (const char kind : {'w', 'j', 'o'}) {
    for (unsigned width = 0; width < kWidths; ++width) {
      names.push_back(kind + std::to_string(width));
      columns.push_back({names.back().c_str(), ParquetType::Int64, kind == 'o'});
    }
  }
  TextPool texts;
  ParquetFile file(argv[1], columns, texts);
  u64 all[kWidths] = {}, few[kWidths] = {};
  const u64 rows = std::strtoull(argv[2], nullptr, 10);
  for (u64 row = 0; row < rows; ++row) {
    for (unsigned width = 0; width < kWidths; ++width) file.number(static_cast<i64>(all[width] += bits_of(row, width)));
    for (unsigned width = 0; width < kWidths; ++width)
      file.number(static_cast<i64>(few[width] += small_step(row, width)));
    for (const u64 value : few) row % 7 == 0 ? file.null() : file.number(static_cast<i64>(value));
    file.done();
  }
  file.close();
  if (!file.error().empty()) std::fprintf(stderr, "%s\n", file.error().c_str());
  return !file.error().empty();
}
