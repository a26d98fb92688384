// What redaction of texts, arguments and variables share.
#pragma once

#include <algorithm>
#include <string_view>

namespace gputrace {

inline constexpr std::string_view kHidden = "***";

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_word(char c) { return is_digit(c) || is_lower(c) || is_upper(c) || c == '_' || c == '-'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// No secret: a port, a count, a size.
inline bool is_small_number(std::string_view value) {
  return value.size() <= 7 && std::all_of(value.begin(), value.end(), is_digit);
}

// A name whose value is secret. "tokenizer" and "max_tokens" are none: only a last part that says it.
bool is_secret_name(std::string_view name);

}  // namespace gputrace
