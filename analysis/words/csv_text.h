// Fields of CSV (RFC 4180).
#pragma once

#include <string>
#include <string_view>

#include "analysis/words/safe_text.h"

namespace gputrace {

inline void csv_field(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
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
inline std::string csv_harmless(std::string_view text) {
  std::string safe = safe_text(std::string(text));
  if (!safe.empty() && std::string_view("=+-@").find(safe[0]) != std::string_view::npos) safe.insert(0, 1, '\'');
  return safe;
}

}  // namespace gputrace
