// What a code object says of itself: its texts, where in it an instruction lies, the line of that. Each is read through
// `read(address, out, size)`, which answers whether it could: one's own memory or another process's, of which nothing need
// be what it is taken for.
#pragma once

#include <cstring>

#include "base/types.h"
#include "frames/python_layout.h"

namespace gputrace {

inline constexpr u32 kMaxPythonText = 1024;  // bytes of a name as it lies there; of a longer one its end
inline constexpr u32 kMaxPythonUtf8 = 3 * kMaxPythonText;
inline constexpr u32 kMaxPythonLines = 1u << 20;  // bytes of a line table

inline u32 put_utf8(u8* out, u32 character) {
  if (character < 0x80) return out[0] = static_cast<u8>(character), 1;
  if (character < 0x800) {
    out[0] = static_cast<u8>(0xc0 | character >> 6);
    out[1] = static_cast<u8>(0x80 | (character & 63));
    return 2;
  }
  if (character < 0x10000) {
    out[0] = static_cast<u8>(0xe0 | character >> 12);
    out[1] = static_cast<u8>(0x80 | (character >> 6 & 63));
    out[2] = static_cast<u8>(0x80 | (character & 63));
    return 3;
  }
  out[0] = static_cast<u8>(0xf0 | character >> 18);
  out[1] = static_cast<u8>(0x80 | (character >> 12 & 63));
  out[2] = static_cast<u8>(0x80 | (character >> 6 & 63));
  out[3] = static_cast<u8>(0x80 | (character & 63));
  return 4;
}

template <typename Read>
bool python_type_is(u64 object, const char* name, Read&& read) {
  u64 type = 0, at = 0;
  char text[8] = {};
  return read(object + kTypeOffset, &type, sizeof type) && read(type + kTypeNameOffset, &at, sizeof at) &&
         read(at, text, std::strlen(name) + 1) && std::strcmp(text, name) == 0;
}

// Whether a code object lies there, and its parts are what they should be.
template <typename Read>
bool python_code_is_sound(const PythonLayout& layout, u64 code, Read&& read) {
  constexpr i32 kLargestFirstLine = 1 << 28;
  u64 name = 0, file = 0, lines = 0;
  i32 first = 0;
  return python_type_is(code, "code", read) && read(code + layout.code_name, &name, sizeof name) &&
         python_type_is(name, "str", read) && read(code + layout.code_file, &file, sizeof file) &&
         python_type_is(file, "str", read) && read(code + layout.code_lines, &lines, sizeof lines) &&
         python_type_is(lines, "bytes", read) && read(code + layout.code_first_line, &first, sizeof first) &&
         first >= 0 && first < kLargestFirstLine;
}

// A str as UTF-8 into kMaxPythonUtf8 bytes; how many it takes. 0: it is empty, or could not be read.
template <typename Read>
u32 read_str(const PythonLayout& layout, u64 str, u8* out, Read&& read) {
  u64 length = 0;
  u32 state = 0;
  if (!read(str + kSizeOffset, &length, sizeof length) || !read(str + kStrStateOffset, &state, sizeof state)) return 0;
  const u32 kind = state >> 2 & 7, compact = state >> 5 & 1, ascii = state >> 6 & 1;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return 0;
  const u64 most = ascii ? kMaxPythonText : kMaxPythonText / 4;
  const u64 skipped = length > most ? length - most : 0;
  const u64 bytes = (length - skipped) * kind;
  u8 raw[kMaxPythonText];
  if (!read(str + (ascii ? layout.ascii_text : layout.other_text) + skipped * kind, ascii ? out : raw, bytes)) return 0;
  if (ascii) return static_cast<u32>(bytes);
  u32 size = 0;
  for (u64 i = 0; i < bytes; i += kind) {
    u32 character = 0;
    std::memcpy(&character, raw + i, kind);
    size += put_utf8(out + size, character);
  }
  return size;
}

// Where an instruction (an index or an address, as the layout says) lies, in bytes from the code's first. False: the function
// has not been entered yet, which Python's own traceback leaves out. `traceable`: what the code has at code_traceable.
inline bool offset_of(const PythonLayout& layout, u64 code, u64 instruction, bool in_generator, i32 traceable,
                      u64& offset) {
  if (!layout.instruction_is_address) {
    offset = static_cast<i32>(instruction) < 0 ? 0 : instruction * layout.instruction_unit;
    return true;
  }
  const u64 first = code + layout.code_bytes;
  if (instruction < first) return offset = 0, in_generator;
  offset = instruction - first;
  return in_generator || offset >= static_cast<u64>(traceable) * 2;
}

// The line at that offset. `room`: kMaxPythonLines bytes. 0: not known.
template <typename Read>
u32 line_at(const PythonLayout& layout, u64 code, u32 first_line, u64 offset, u8* room, Read&& read) {
  u64 lines = 0, size = 0;
  if (!read(code + layout.code_lines, &lines, sizeof lines) || !read(lines + kSizeOffset, &size, sizeof size) ||
      size > kMaxPythonLines || !read(lines + kBytesTextOffset, room, size))
    return 0;
  return line_of(layout.lines, room, size, first_line, offset);
}

}  // namespace gputrace
