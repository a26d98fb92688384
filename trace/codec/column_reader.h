// A column of the transform (transform.h) back to the words that it was made of, a tile of rows at a time. The bytes come from a
// file: every size is checked before it is followed. One thread.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "base/types.h"

namespace gputrace {

inline constexpr std::size_t kColumnHeader = 10;
enum ColumnMode : u8 { kXor = 0, kDelta = 1 };

inline u64 load_word(const u8* at) {
  u64 word;
  std::memcpy(&word, at, 8);
  return word;
}
inline u64 unzigzag(u64 value) { return (value >> 1) ^ (0 - (value & 1)); }

// Reads the transformed bytes; every take() checks.
struct ColumnInput {
  const u8* at;
  std::size_t left;

  const u8* take(std::size_t bytes) {
    if (bytes > left) return nullptr;
    const u8* here = at;
    at += bytes;
    left -= bytes;
    return here;
  }
};

// A column being restored, tile by tile.
class ColumnReader {
 public:
  bool open(ColumnInput& in, std::size_t rows) {
    const u8* head = in.take(kColumnHeader);
    if (!head || head[0] > kDelta) return false;
    delta_ = head[0] == kDelta;
    base_ = load_word(head + 2);
    mask_ = head[1];
    for (int b = 0; b < 8; ++b) {
      const bool there = mask_ >> b & 1;
      plane_[b] = there ? in.take(rows) : kZeros;
      step_[b] = there ? ~std::size_t{0} : 0;
      if (!plane_[b]) return false;
    }
    return true;
  }
  bool constant() const { return mask_ == 0; }
  u64 base() const { return base_; }
  // Rows [from, from + count) → values; rows must be asked for in order.
  void read(std::size_t from, std::size_t count, u64* values) {
    if (constant()) return static_cast<void>(std::fill_n(values, count, base_));
    const std::size_t whole = count / kGroup * kGroup;
    if (delta_) {
      mask_ < 16 ? read_groups<true, false>(from, whole, values) : read_groups<true, true>(from, whole, values);
      for (std::size_t i = whole; i < count; ++i) values[i] = unzigzag(value(from + i));
      for (std::size_t i = 0; i < count; ++i) values[i] = base_ += values[i];
    } else {
      mask_ < 16 ? read_groups<false, false>(from, whole, values) : read_groups<false, true>(from, whole, values);
      for (std::size_t i = whole; i < count; ++i) values[i] = value(from + i) ^ base_;
    }
  }

 private:
  static constexpr std::size_t kGroup = 16;  // rows: a register of each plane
  alignas(16) static constexpr u8 kZeros[kGroup] = {};

  __m128i group(int plane, std::size_t row) const {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(plane_[plane] + (row & step_[plane])));
  }
  u64 value(std::size_t row) const {
    u64 whole = 0;
    for (int b = 0; b < 8; ++b) whole |= static_cast<u64>(plane_[b][row & step_[b]]) << (8 * b);
    return whole;
  }

  // Planes are woven into values: bytes into pairs, those into fours, those into eights. `kUpper`: bytes 4 to 7 vary too.
  template <bool kSigned, bool kUpper>
  void read_groups(std::size_t from, std::size_t count, u64* values) const {
    const __m128i zero = _mm_setzero_si128();
    const __m128i base = _mm_set1_epi64x(static_cast<long long>(base_)), one = _mm_set1_epi64x(1);
    const auto put = [&](u64* to, __m128i pair) {
      if constexpr (kSigned)
        pair = _mm_xor_si128(_mm_srli_epi64(pair, 1), _mm_sub_epi64(zero, _mm_and_si128(pair, one)));
      else
        pair = _mm_xor_si128(pair, base);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), pair);
    };
    for (std::size_t i = 0; i < count; i += kGroup) {
      const auto weave = [&](int plane, __m128i(&fours)[4]) {
        const __m128i a = group(plane, from + i), b = group(plane + 1, from + i);
        const __m128i c = group(plane + 2, from + i), d = group(plane + 3, from + i);
        const __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
        const __m128i ab_high = _mm_unpackhi_epi8(a, b), cd_high = _mm_unpackhi_epi8(c, d);
        fours[0] = _mm_unpacklo_epi16(ab, cd), fours[1] = _mm_unpackhi_epi16(ab, cd);
        fours[2] = _mm_unpacklo_epi16(ab_high, cd_high), fours[3] = _mm_unpackhi_epi16(ab_high, cd_high);
      };
      __m128i lower[4], upper[4] = {zero, zero, zero, zero};
      weave(0, lower);
      if constexpr (kUpper) weave(4, upper);
      for (std::size_t four = 0; four < 4; ++four) {
        put(values + i + 4 * four, _mm_unpacklo_epi32(lower[four], upper[four]));
        put(values + i + 4 * four + 2, _mm_unpackhi_epi32(lower[four], upper[four]));
      }
    }
  }

  bool delta_ = false;
  u8 mask_ = 0;  // planes that are there
  u64 base_ = 0;
  const u8* plane_[8];
  std::size_t step_[8];  // ANDed with the row: 0 where all rows are that of kZeros
};

}  // namespace gputrace
