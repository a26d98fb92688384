// Builds "key\tvalue\n" lines in memory that the caller owns. What does not fit is cut at a line border.
#pragma once

#include <cstring>

#include "base/bounded_text.h"

namespace gputrace {

class InfoText {
 public:
  InfoText(char* out, u32 capacity) : lines_(out, capacity) {}

  // value_length: of a value that may hold any byte; \t \n and \ are escaped.
  void add(const char* key, const char* value, u64 value_length) {
    const u64 start = lines_.size();
    lines_ << key << "\t";
    for (u64 i = 0; i < value_length; ++i) put_escaped(value + i);
    lines_ << "\n";
    if (!lines_.fits()) lines_.cut_back(start);
  }
  void add(const char* key, const char* value) { add(key, value, std::strlen(value)); }
  void add(const char* key, u64 value) {
    char digits[20];
    BoundedText text(digits, sizeof digits);
    text << value;
    add(key, digits, text.size());
  }
  void add_hex(const char* key, u64 value) {
    char digits[16];
    BoundedText(digits, sizeof digits).put_hex(value, sizeof digits);
    add(key, digits, sizeof digits);
  }
  const char* data() const { return lines_.data(); }
  u32 size() const { return static_cast<u32>(lines_.size()); }

 private:
  void put_escaped(const char* c) {
    if (*c == '\t')
      lines_ << "\\t";
    else if (*c == '\n')
      lines_ << "\\n";
    else if (*c == '\\')
      lines_ << "\\\\";
    else
      lines_.put(c, 1);
  }

  BoundedText lines_;
};

}  // namespace gputrace
