// A report as text, JSON or CSV. Pure: the result is a string.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace gputrace {

struct TextStyle {
  std::size_t width = 100;  // columns of the terminal
  bool color = false;
  bool utf8 = true;
  // Asked for by name; "findings" is one of them. They are shown also when they are empty, and of the rest what concerns them: their findings, why
  // they are not there; all of it with "overview" and "quality". Empty: everything.
  std::vector<std::string> sections;
  std::size_t rows = 0;  // rows of each table; 0: all
  bool wide = false;     // tables as wide as they are: nothing is cut or left out
};

std::string render_text(const Report& report, const TextStyle& style);

// The first screen: what ran, where the device's time went, what to do about it, what was heaviest, what was lost.
//   · At most `lines` lines, except where the head and one finding alone take more: findings, then kernels, are left
//     out whole; no sentence is cut.
//   · From the tables of the report alone; what is not in them has no line.
struct ScreenStyle : TextStyle {
  std::size_t lines = 40;
  bool bars = false;              // a terminal: the device's time as a bar
  bool head = false;              // up to the first finding: what `run` ends with
  std::vector<std::string> next;  // commands to go on with
};
std::string render_screen(const Report& report, const ScreenStyle& style);
// Schema gputrace-report/1 (docs): always valid UTF-8; bytes that are none come as U+FFFD.
// `indent`: blanks a level; -1: all in one line.
std::string render_json(const Report& report, int indent = 1, const char* schema = "gputrace-report/1");
// RFC 4180: a header of column keys, base units, empty for null.
std::string render_csv(const Table& table);
// id, severity, section, gain_ns, site, text, fix.
std::string render_csv(const std::vector<Finding>& findings);

}  // namespace gputrace
