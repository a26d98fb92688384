// Parquet's encodings of numbers, each put behind what a page holds already (https://github.com/apache/parquet-format/blob/master/Encodings.md).
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>

#include "base/types.h"

namespace gputrace::parquet {

void put_varint(std::string& out, u64 value);
void put_little(std::string& out, u64 value, unsigned bytes);

// Numbers below 2^width one after the other, lowest bits first; width is at most 64. `to` has room for whole bytes of them all and eight more.
template <typename Value>
char* put_bits(char* to, std::size_t count, unsigned width, Value&& value) {
  u64 bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const u64 number = value(i);
    bits |= number << held;
    held += width;
    if (held < 64) continue;
    std::memcpy(to, &bits, 8);
    to += 8, held -= 64;
    bits = held > 0 ? number >> (width - held) : 0;
  }
  std::memcpy(to, &bits, 8);
  return to + (held + 7) / 8;
}

// A run of the RLE / bit-packing hybrid: numbers below 2^width, eight by eight; width is at most 32.
template <typename Value>
void put_packed(std::string& out, std::size_t count, unsigned width, Value&& value) {
  const std::size_t groups = (count + 7) / 8;
  put_varint(out, groups << 1 | 1);
  const std::size_t begin = out.size();
  out.resize(begin + groups * width + 8);  // the rest of the last eight: zeros
  put_bits(out.data() + begin, count, width, value);
  out.resize(begin + groups * width);
}

// Its other kind of run: one number, again and again.
void put_repeated(std::string& out, std::size_t count, unsigned width, u64 value);

inline unsigned width_of(std::size_t dictionary) {
  return std::max(1u, static_cast<unsigned>(std::bit_width(dictionary > 0 ? dictionary - 1 : 0)));
}

// Values as places in a dictionary of so many words.
template <typename Place>
void put_places(std::string& out, std::size_t words, std::size_t count, Place&& place) {
  const unsigned width = width_of(words);
  out += static_cast<char>(width);
  if (words == 1)
    put_repeated(out, count, width, 0);
  else
    put_packed(out, count, width, place);
}

// PLAIN, of so many bytes each; flags a bit each.
enum class Plain : u8 { Flag, Four, Eight };
void put_plain(std::string& out, std::span<const i64> values, Plain as);

// DELTA_BINARY_PACKED: what each number has over the one before it, less the least such of 128, in the bits that the largest of 32 takes. Wraps around
// as the format does.
void put_deltas(std::string& out, std::span<const i64> values);

// Which rows have one of so many values: repeated where all or none have.
void put_levels(std::string& page, std::span<const u8> there, std::size_t values);

}  // namespace gputrace::parquet
