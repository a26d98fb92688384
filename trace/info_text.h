// Info chunks are lines of "key TAB value", in which backslash, tab and newline are written as \\, \t and \n. So is what else keeps
// texts of others in lines and columns.
#pragma once

#include <string>
#include <string_view>

namespace gputrace {

inline void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '\n' || c == '\t') out += '\\';
    out += c == '\n' ? 'n' : c == '\t' ? 't' : c;
  }
}

inline void append_info_line(std::string& out, std::string_view key, std::string_view value) {
  append_escaped(out, key);
  out += '\t';
  append_escaped(out, value);
  out += '\n';
}

inline std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    out += next == 't' ? '\t' : next == 'n' ? '\n' : next;
  }
  return out;
}

}  // namespace gputrace
