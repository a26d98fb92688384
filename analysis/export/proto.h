// Protocol buffers on the wire, written front to back into a buffer: varints, fixed64, bytes, and messages whose length
// is put in front once it is known.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace gputrace {

class Proto {
 public:
  std::string bytes;

  void varint(u64 value) {
    char small[10];
    unsigned size = 0;
    for (; value >= 0x80; value >>= 7) small[size++] = static_cast<char>(value | 0x80);
    small[size++] = static_cast<char>(value);
    bytes.append(small, size);
  }
  void number(u32 field, u64 value) {
    varint(u64{field} << 3);
    varint(value);
  }
  void fixed(u32 field, u64 value) {
    varint(u64{field} << 3 | 1);
    char raw[8];
    std::memcpy(raw, &value, sizeof raw);
    bytes.append(raw, sizeof raw);
  }
  void real(u32 field, double value) {
    u64 bits;
    std::memcpy(&bits, &value, sizeof bits);
    fixed(field, bits);
  }
  void text(u32 field, std::string_view value) {
    varint(u64{field} << 3 | 2);
    varint(value.size());
    bytes.append(value);
  }
  // `fill()` writes the fields of the message.
  template <typename Fill>
  void message(u32 field, Fill&& fill) {
    varint(u64{field} << 3 | 2);
    const std::size_t at = bytes.size();
    bytes.push_back(0);  // enough for most: a length below 128
    fill();
    const u64 size = bytes.size() - at - 1;
    if (size < 0x80) {
      bytes[at] = static_cast<char>(size);
      return;
    }
    Proto length;
    length.varint(size);
    bytes.replace(at, 1, length.bytes);
  }
};

}  // namespace gputrace
