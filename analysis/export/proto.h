// Protocol buffers on the wire, written front to back into a buffer: varints, fixed64, bytes, and messages whose length
// is put in front once it is known.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace gputrace {

class Proto {
 public:
  std::string bytes;

  void varint(u64 value) {
    char small[kLongest];
    bytes.append(small, static_cast<std::size_t>(put(small, value) - small));
  }
  void number(u32 field, u64 value) {
    char small[2 * kLongest];
    char* const after = put(small, u64{field} << 3);
    bytes.append(small, static_cast<std::size_t>(put(after, value) - small));
  }
  void fixed(u32 field, u64 value) {
    char small[kLongest + sizeof value];
    char* const after = put(small, u64{field} << 3 | 1);
    std::memcpy(after, &value, sizeof value);
    bytes.append(small, static_cast<std::size_t>(after + sizeof value - small));
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

  static constexpr std::size_t kLongest = 10;  // bytes of a varint

  // Returns where it ends.
  static char* put(char* to, u64 value) {
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to++ = static_cast<char>(value);
    return to;
  }
  static std::size_t size_of(u64 value) { return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7; }
};

// Fields into room that its owner knows to be enough: for what is written a million times.
struct ProtoFields {
  char* at;

  void varint(u64 value) { at = Proto::put(at, value); }
  void number(u32 field, u64 value) {
    varint(u64{field} << 3);
    varint(value);
  }
  void fixed(u32 field, u64 value) {
    varint(u64{field} << 3 | 1);
    raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void message(u32 field, std::size_t size) {  // its head; its fields follow
    varint(u64{field} << 3 | 2);
    varint(size);
  }
  // `fill()` writes the fields of the message, in less than 128 (one byte of length) or 16,384 bytes (two): a varint may be longer than it must, as
  // those are that Perfetto's own writers put in front of messages.
  template <unsigned LengthBytes, typename Fill>
  void message_of(u32 field, Fill&& fill) {
    static_assert(LengthBytes == 1 || LengthBytes == 2);
    varint(u64{field} << 3 | 2);
    char* const length = at;
    at += LengthBytes;
    fill();
    const std::size_t size = static_cast<std::size_t>(at - length) - LengthBytes;
    length[0] = static_cast<char>(LengthBytes == 1 ? size : size | 0x80);
    if (LengthBytes == 2) length[1] = static_cast<char>(size >> 7);
  }
  void raw(std::string_view bytes) {
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  }
};

}  // namespace gputrace
