// Builds "key\tvalue\n" lines in memory that the caller owns. What does not fit is cut at a line border.
#pragma once

#include <cstring>

#include "base/types.h"

namespace gputrace {

class InfoText {
 public:
  InfoText(char* out, u32 capacity) : out_(out), capacity_(capacity) {}

  // value_length: of a value that may hold any byte; \t \n and \ are escaped.
  void add(const char* key, const char* value, u64 value_length) {
    const u32 start = size_;
    put_raw(key, std::strlen(key));
    put_char('\t');
    for (u64 i = 0; i < value_length; ++i) {
      const char c = value[i];
      if (c == '\t' || c == '\n' || c == '\\') put_char('\\');
      put_char(c == '\t' ? 't' : c == '\n' ? 'n' : c);
    }
    put_char('\n');
    if (!full_) return;
    size_ = start;
    full_ = false;
  }
  void add(const char* key, const char* value) { add(key, value, std::strlen(value)); }
  void add(const char* key, u64 value) {
    char digits[20];
    u32 n = 20;
    do digits[--n] = static_cast<char>('0' + value % 10);
    while (value /= 10);
    add(key, digits + n, 20 - n);
  }
  void add_hex(const char* key, u64 value) {
    char digits[16];
    for (int i = 15; i >= 0; --i, value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
    add(key, digits, 16);
  }
  const char* data() const { return out_; }
  u32 size() const { return size_; }

 private:
  void put_char(char c) {
    if (size_ == capacity_) {
      full_ = true;
      return;
    }
    out_[size_++] = c;
  }
  void put_raw(const char* text, u64 length) {
    for (u64 i = 0; i < length; ++i) put_char(text[i]);
  }

  char* out_;
  u32 capacity_;
  u32 size_ = 0;
  bool full_ = false;
};

}  // namespace gputrace
