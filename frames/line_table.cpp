#include "frames/line_table.h"

namespace gputrace {
namespace {

constexpr i64 kLargestLine = 1 << 30;

u32 sensible(i64 line) { return line > 0 && line < kLargestLine ? static_cast<u32>(line) : 0; }

// An increment of 255 bytes or of 127 lines may go on in the next pair; a pair applies from its own address on.
u32 line_by_increments(const u8* table, u64 size, i64 line, u64 offset) {
  u64 address = 0;
  for (u64 at = 0; at + 1 < size; at += 2) {
    address += table[at];
    if (address > offset) break;
    line += static_cast<i8>(table[at + 1]);
  }
  return sensible(line);
}

u32 line_by_ranges(const u8* table, u64 size, i64 line, u64 offset) {
  constexpr i8 kNoLine = -128;
  u64 end = 0;
  for (u64 at = 0; at + 1 < size; at += 2) {
    const i8 change = static_cast<i8>(table[at + 1]);
    if (change != kNoLine) line += change;
    end += table[at];
    if (end > offset) return change == kNoLine ? 0 : sensible(line);
  }
  return 0;
}

// Six bits a byte, least first; bit 6: more follows.
u64 read_varint(const u8* table, u64 size, u64& at) {
  u64 value = 0;
  for (u32 shift = 0; at < size; shift += 6) {
    const u8 byte = table[at++];
    if (shift < 30) value |= u64{byte & 63u} << shift;
    if (!(byte & 64)) break;
  }
  return value;
}
i64 read_signed(const u8* table, u64 size, u64& at) {
  const u64 value = read_varint(table, size, at);
  return value & 1 ? -static_cast<i64>(value >> 1) : static_cast<i64>(value >> 1);
}

u32 line_by_locations(const u8* table, u64 size, i64 line, u64 offset) {
  constexpr u32 kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;
  constexpr u64 kUnit = 2;  // bytes of an instruction
  u64 end = 0;
  for (u64 at = 0; at < size;) {
    const u8 head = table[at++];
    if (!(head & 128)) return 0;  // not the head of an entry
    const u32 code = (head >> 3) & 15;
    if (code == kLong || code == kNoColumns)
      line += read_signed(table, size, at);
    else if (code >= kOneLine && code < kNoColumns)
      line += code - kOneLine;
    end += ((head & 7u) + 1) * kUnit;
    if (end > offset) return code == kNone ? 0 : sensible(line);
    while (at < size && !(table[at] & 128)) ++at;  // columns
  }
  return 0;
}

}  // namespace

u32 line_of(LineTableKind kind, const u8* table, u64 size, u32 first_line, u64 offset) {
  switch (kind) {
    case LineTableKind::Increments:
      return line_by_increments(table, size, first_line, offset);
    case LineTableKind::Ranges:
      return line_by_ranges(table, size, first_line, offset);
    case LineTableKind::Locations:
      return line_by_locations(table, size, first_line, offset);
  }
  return 0;
}

}  // namespace gputrace
