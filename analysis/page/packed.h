// Columns of numbers as little text: variable-length integers, LZ4 (one block a column), base64. page/src/timeline/unpack.ts reads them.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace gputrace {

class PackedColumn {
 public:
  void add(u64 value) {  // 7 bits a byte, lowest first
    if (value < 0x80) return bytes_.push_back(static_cast<char>(value));
    char small[10];
    char* to = small;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to++ = static_cast<char>(value);
    bytes_.append(small, static_cast<std::size_t>(to - small));
  }
  void add_signed(i64 value) { add(static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63)); }  // zigzag
  void add_text(const std::string& text) {  // its length, then its bytes
    add(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
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
