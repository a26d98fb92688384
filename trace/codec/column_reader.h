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

// Pairs of words.
inline __m128i both(u64 value) { return _mm_set1_epi64x(static_cast<long long>(value)); }
inline __m128i unzigzag(__m128i pair) {
  return _mm_xor_si128(_mm_srli_epi64(pair, 1), _mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(pair, both(1))));
}
// Of two differences, the first of them to `before`, which stands in both words.
inline __m128i sums(__m128i pair, __m128i before) {
  return _mm_add_epi64(_mm_add_epi64(pair, _mm_slli_si128(pair, 8)), before);
}

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
    rows_ = rows;
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
  // Rows [from, from + count), counted from `from`, go to `sink`: sink.two(row, pair) takes two of them at a time, sink.one(row, value) what
  // is left. Rows must be asked for in order.
  template <typename Sink>
  void read(std::size_t from, std::size_t count, Sink&& sink) {
    if (constant()) return fill(count, sink);
    if (delta_)
      mask_ < 16 ? read_rows<true, false>(from, count, sink) : read_rows<true, true>(from, count, sink);
    else
      mask_ < 16 ? read_rows<false, false>(from, count, sink) : read_rows<false, true>(from, count, sink);
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

  template <typename Sink>
  void fill(std::size_t count, Sink& sink) const {
    const __m128i pair = both(base_);
    for (std::size_t row = 0; row + 2 <= count; row += 2) sink.two(row, pair);
    if (count % 2) sink.one(count - 1, base_);
  }

  // Planes are woven into values: bytes into pairs, those into fours, those into eights. `kSums`: values are differences; `kUpper`: bytes
  // 4 to 7 vary too.
  template <bool kSums, bool kUpper, typename Sink>
  void read_rows(std::size_t from, std::size_t count, Sink& sink) {
    const std::size_t whole = count / kGroup * kGroup;
    const __m128i zero = _mm_setzero_si128();
    __m128i base = both(base_);
    const auto put = [&](std::size_t row, __m128i pair) {
      pair = kSums ? sums(unzigzag(pair), base) : _mm_xor_si128(pair, base);
      if constexpr (kSums) base = _mm_unpackhi_epi64(pair, pair);
      sink.two(row, pair);
    };
    const auto weave = [&](int plane, std::size_t row, __m128i(&fours)[4]) {
      const __m128i a = group(plane, row), b = group(plane + 1, row);
      const __m128i c = group(plane + 2, row), d = group(plane + 3, row);
      const __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
      const __m128i ab_high = _mm_unpackhi_epi8(a, b), cd_high = _mm_unpackhi_epi8(c, d);
      fours[0] = _mm_unpacklo_epi16(ab, cd), fours[1] = _mm_unpackhi_epi16(ab, cd);
      fours[2] = _mm_unpacklo_epi16(ab_high, cd_high), fours[3] = _mm_unpackhi_epi16(ab_high, cd_high);
    };
    for (std::size_t i = 0; i < whole; i += kGroup) {
      __m128i lower[4], upper[4] = {zero, zero, zero, zero};
      weave(0, from + i, lower);
      if constexpr (kUpper) weave(4, from + i, upper);
      for (std::size_t four = 0; four < 4; ++four) {
        put(i + 4 * four, _mm_unpacklo_epi32(lower[four], upper[four]));
        put(i + 4 * four + 2, _mm_unpackhi_epi32(lower[four], upper[four]));
      }
    }
    if constexpr (kSums) base_ = static_cast<u64>(_mm_cvtsi128_si64(base));
    const auto put_one = [&](std::size_t row, u64 word) {
      sink.one(row, kSums ? base_ += unzigzag(word) : word ^ base_);
    };
    if (whole != count &&
        from + whole + kGroup <= rows_) {  // what is left of a group of which the next tile reads the rest
      __m128i lower[4], upper[4] = {zero, zero, zero, zero};
      weave(0, from + whole, lower);
      if constexpr (kUpper) weave(4, from + whole, upper);
      alignas(16) u64 words[kGroup];
      for (std::size_t four = 0; four < 4; ++four) {
        _mm_store_si128(reinterpret_cast<__m128i*>(words + 4 * four), _mm_unpacklo_epi32(lower[four], upper[four]));
        _mm_store_si128(reinterpret_cast<__m128i*>(words + 4 * four + 2), _mm_unpackhi_epi32(lower[four], upper[four]));
      }
      for (std::size_t i = whole; i < count; ++i) put_one(i, words[i - whole]);
      return;
    }
    for (std::size_t i = whole; i < count; ++i) put_one(i, value(from + i));
  }

  bool delta_ = false;
  u8 mask_ = 0;  // planes that are there
  u64 base_ = 0;
  std::size_t rows_ = 0;  // of the whole column
  const u8* plane_[8];
  std::size_t step_[8];  // ANDed with the row: 0 where all rows are that of kZeros
};

}  // namespace gputrace
