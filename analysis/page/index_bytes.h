// Bytes of the events' index: packed, checked, read and written at a place; numbers out of bytes that are not trusted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "analysis/page/picked_events.h"

namespace gputrace {

inline constexpr std::size_t kMostWaiting =
    2'000'000;  // events of a side that are not in the file yet; some 10 bytes each
inline constexpr u32 kLengthClasses = 57;

// ns: instants and lengths beyond are no times, and sums of them would not fit.
inline constexpr Nanos kFarthest = Nanos{1} << 61;
inline bool is_time(Nanos begin, Nanos end) {
  return begin >= -kFarthest && begin <= kFarthest && end >= begin && end <= kFarthest;
}

// 0: shorter than 256 ns; 1: shorter than 512 ns; …
inline u32 length_class(const LoggedEvent& event) {
  const Nanos length = event.end - event.begin;
  return length < 256 ? 0 : static_cast<u32>(std::bit_width(static_cast<u64>(length) >> 8));
}
inline Nanos shortest_of_class(u32 number) { return number == 0 ? 0 : Nanos{128} << std::min(number, 55u); }

inline u64 zigzag(u64 step) { return step << 1 ^ (0 - (step >> 63)); }
inline u64 unzigzag(u64 value) { return value >> 1 ^ (0 - (value & 1)); }

u64 checksum_of(const std::string& bytes);
std::string packed(const std::string& raw);  // Zstandard; empty: it failed
// `raw_size`: exactly so much; else nothing.
std::optional<std::string> unpacked(const std::string& packed, u64 raw_size);

// All of `bytes`, or false.
bool read_at(int file, std::string& bytes, u64 offset);
bool write_at(int file, const std::string& bytes, u64 offset);
std::optional<u64> size_of(int file);

// What PackedColumn wrote. Past the end, and where a number or a length is none, everything is 0 and good() is false.
class ColumnReader {
 public:
  explicit ColumnReader(const std::string& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  u64 number() {
    u64 value = 0;
    for (unsigned shift = 0; at_ < end_ && shift < 64; shift += 7) {
      const u8 byte = static_cast<u8>(*at_++);
      value |= static_cast<u64>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  i64 number_signed() { return static_cast<i64>(unzigzag(number())); }
  // A number of things that follow, of at least `least` bytes each.
  std::size_t count(u64 least = 1) {
    const u64 value = number();
    return value <= static_cast<u64>(end_ - at_) / least ? value : fail();
  }
  std::string text() {
    const std::size_t length = count();
    std::string made(at_, length);
    at_ += length;
    return made;
  }
  bool good() const { return good_; }
  bool at_end() const { return at_ == end_; }

 private:
  u64 fail() {
    good_ = false;
    at_ = end_;
    return 0;
  }

  const char *at_, *end_;
  bool good_ = true;
};

}  // namespace gputrace
