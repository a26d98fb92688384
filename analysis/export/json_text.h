// JSON, written piece by piece: strings with what must be escaped, times in microseconds with three digits behind the
// point, which are ns.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "analysis/words/safe_text.h"
#include "base/types.h"

namespace gputrace {

inline void json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

inline void json_micros(std::string& out, Nanos nanos) {
  out += std::to_string(nanos / 1000);
  const auto rest = static_cast<unsigned>(nanos % 1000);
  const char digits[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  out.append(digits, sizeof digits);
}

}  // namespace gputrace
