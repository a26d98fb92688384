// A report as text, JSON or CSV. Pure: the result is a string.
#pragma once

#include <string>

#include "analysis/table/table.h"

namespace gputrace {

struct TextStyle {
  std::size_t width = 100;  // columns of the terminal
  bool color = false;
  bool utf8 = true;
  bool all_sections = false;  // sections were asked for by name: show them also when they are empty
  std::size_t rows = 0;       // rows of each table; 0: all
};

std::string render_text(const Report& report, const TextStyle& style);
// Schema gputrace-report/1 (docs): always valid UTF-8; bytes that are none come as U+FFFD.
// `indent`: blanks a level; -1: all in one line.
std::string render_json(const Report& report, int indent = 1);
// RFC 4180: a header of column keys, base units, empty for null.
std::string render_csv(const Table& table);

}  // namespace gputrace
