// Columns of numbers as little text: variable-length integers, LZ4 (one block a column), base64. page/src/timeline/unpack.ts reads them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace gputrace {

class PackedColumn {
 public:
  void add(u64 value) {  // 7 bits a byte, lowest first
    if (room_ - size_ < kMostBytes) grow(kMostBytes);
    char* to = bytes_.get() + size_;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to++ = static_cast<char>(value);
    size_ = static_cast<std::size_t>(to - bytes_.get());
  }
  void add_signed(i64 value) { add(static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63)); }  // zigzag
  void add_text(const std::string& text) {  // its length, then its bytes
    add(text.size());
    if (room_ - size_ < text.size()) grow(text.size());
    text.copy(bytes_.get() + size_, text.size());
    size_ += text.size();
  }
  void clear() { size_ = 0; }
  std::string_view bytes() const { return {bytes_.get(), size_}; }

 private:
  static constexpr std::size_t kMostBytes = 10;  // of a number
  void grow(std::size_t more);

  // No std::string: events are packed some hundred million times, and it looks at its end for each byte.
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0, room_ = 0;
};

// Columns behind each other.
class PackedBlock {
 public:
  struct Extent {
    std::size_t raw = 0, packed = 0;  // bytes
  };
  Extent add(const PackedColumn& column);
  std::string base64() const;

 private:
  std::string bytes_;
};

}  // namespace gputrace
