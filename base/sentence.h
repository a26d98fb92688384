// A sentence put together from pieces, for reasons and warnings: no allocation, bounded, always terminated; what does not
// fit is cut.
#pragma once

#include "base/types.h"

namespace gputrace {

class Sentence {
 public:
  Sentence& operator<<(const char* text) {
    while (*text && size_ + 1 < sizeof text_) text_[size_++] = *text++;
    text_[size_] = 0;
    return *this;
  }
  Sentence& operator<<(u64 number) {
    char digits[21];
    u32 n = sizeof digits;
    digits[--n] = 0;
    do digits[--n] = static_cast<char>('0' + number % 10);
    while (number /= 10);
    return *this << digits + n;
  }
  Sentence& put(const char* text, u64 length) {
    for (u64 i = 0; i < length && size_ + 1 < sizeof text_; ++i) text_[size_++] = text[i];
    text_[size_] = 0;
    return *this;
  }
  const char* text() const { return text_; }
  u32 size() const { return size_; }
  void clear() {
    size_ = 0;
    text_[0] = 0;
  }

 private:
  char text_[600] = "";
  u32 size_ = 0;
};

}  // namespace gputrace
