// Thrift's compact protocol, as far as Parquet's headers and footer need it: https://github.com/apache/thrift/blob/master/doc/specs.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"

namespace gputrace {

class Thrift {
 public:
  std::string bytes;

  void i32_field(u32 id, i64 value) { field(id, 5), zigzag(value); }
  void i64_field(u32 id, i64 value) { field(id, 6), zigzag(value); }
  void text_field(u32 id, std::string_view value) { field(id, 8), text(value); }
  template <typename Fill>
  void struct_field(u32 id, Fill&& fill) {
    field(id, 12);
    structure(fill);
  }
  // `fill(i)` writes element i: structure(), text() or zigzag(), by `type` 12, 8 or 5.
  template <typename Fill>
  void list_field(u32 id, u8 type, std::size_t size, Fill&& fill) {
    field(id, 9);
    if (size < 15) {
      bytes += static_cast<char>(size << 4 | type);
    } else {
      bytes += static_cast<char>(0xf0 | type);
      varint(size);
    }
    for (std::size_t i = 0; i < size; ++i) fill(i);
  }
  template <typename Fill>
  void structure(Fill&& fill) {
    const u32 outer = last_;
    last_ = 0;
    fill();
    bytes += '\0';
    last_ = outer;
  }
  void text(std::string_view value) {
    varint(value.size());
    bytes += value;
  }
  void zigzag(i64 value) { varint(static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63)); }

 private:
  void varint(u64 value) {
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    bytes += static_cast<char>(value);
  }
  // Fields come in the order of their ids, which lie less than 16 apart.
  void field(u32 id, u8 type) {
    bytes += static_cast<char>((id - last_) << 4 | type);
    last_ = id;
  }

  u32 last_ = 0;
};

}  // namespace gputrace
