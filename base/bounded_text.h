// Text put together from pieces in memory of the caller's: no allocation, never past the capacity. What does not fit is left
// out and counted, so that a caller can tell, and take back what is not whole.
#pragma once

#include "base/types.h"

namespace gputrace {

class BoundedText {
 public:
  constexpr BoundedText(char* out, u64 capacity) : out_(out), capacity_(capacity) {}
  BoundedText(const BoundedText&) = delete;
  BoundedText& operator=(const BoundedText&) = delete;

  // Any bytes; a zero follows them where there is room for one.
  constexpr BoundedText& put(const char* text, u64 length) {
    for (u64 i = 0; i < length; ++i, ++size_) {
      if (size_ < capacity_) out_[size_] = text[i];
    }
    terminate();
    return *this;
  }
  constexpr BoundedText& operator<<(const char* text) {
    u64 length = 0;
    while (text[length]) ++length;
    return put(text, length);
  }
  constexpr BoundedText& operator<<(u64 number) {
    char digits[20]{};
    u32 at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while (number /= 10);
    return put(digits + at, sizeof digits - at);
  }
  BoundedText& put_hex(u64 number, u32 count) {  // its last `count` digits, 16 at the most
    char digits[16];
    for (u32 at = count; at > 0; number >>= 4) digits[--at] = "0123456789abcdef"[number & 15];
    return put(digits, count);
  }
  // Takes back what came after the first `size` bytes.
  void cut_back(u64 size) {
    size_ = size;
    terminate();
  }

  // Of all that was put: more than the capacity where something was left out.
  constexpr u64 size() const { return size_; }
  bool fits() const { return size_ <= capacity_; }
  const char* data() const { return out_; }

 private:
  constexpr void terminate() {
    if (size_ < capacity_) out_[size_] = 0;
  }

  char* out_;
  u64 capacity_;
  u64 size_ = 0;
};

}  // namespace gputrace
