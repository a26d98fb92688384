// How long devices take from an operation that is ready to its start, by kind of operation: what is usual, and how much of
// what was taken lies beyond ten times that, which is not the device's way any more but something that is not known.
//   · Lengths are kept in buckets of a quarter of an octave, with their sums: the limit lies between two buckets, so what
//     is beyond it is exact.
//   · Memory: 3 KB a kind.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "analysis/gaps/operations.h"

namespace gputrace {

class DispatchTimes {
 public:
  static constexpr Nanos kShortestLimit = 10'000;  // drivers and devices need 3 to 8 us for a way of their own

  void add(OperationKind kind, Nanos length) {
    if (length <= 0) return;
    Bucket& bucket = at(kind)[index(length)];
    ++bucket.count;
    bucket.sum += length;
  }
  void add(const DispatchTimes& other) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      for (unsigned i = 0; i < kBuckets; ++i) {
        kinds_[kind][i].count += other.kinds_[kind][i].count;
        kinds_[kind][i].sum += other.kinds_[kind][i].sum;
      }
    }
  }

  // The 10th percentile, to a quarter of an octave; 0: there was none yet.
  Nanos usual(OperationKind kind) const {
    u64 count = 0, before = 0;
    for (const Bucket& bucket : at(kind)) count += bucket.count;
    for (unsigned i = 0; i < kBuckets; ++i) {
      before += at(kind)[i].count;
      if (before != 0 && before * 10 >= count) return first_of(i);
    }
    return 0;
  }
  Nanos limit(OperationKind kind) const { return first_of(index(std::max(kShortestLimit, 10 * usual(kind)) - 1) + 1); }
  // Sum of what the lengths of that kind have beyond `limit`, one of limit(); and how many have some.
  IdleSum beyond(OperationKind kind, Nanos limit) const {
    IdleSum sum;
    for (unsigned i = index(limit); i < kBuckets; ++i) {
      const Bucket& bucket = at(kind)[i];
      const Nanos over = bucket.sum - static_cast<Nanos>(bucket.count) * limit;
      sum.count += bucket.count - (i == index(limit) && over == 0 ? bucket.count : 0);
      sum.total_ns += static_cast<u64>(over);
    }
    return sum;
  }

 private:
  static constexpr unsigned kBuckets = 4 * 62;
  struct Bucket {
    u64 count = 0;
    Nanos sum = 0;
  };
  using Kind = std::array<Bucket, kBuckets>;

  // Of lengths from 4 on, their two bits after the highest; shorter ones each for itself.
  static unsigned index(Nanos length) {
    const u64 value = static_cast<u64>(length);
    if (value < 4) return static_cast<unsigned>(value);
    const unsigned octave = static_cast<unsigned>(std::bit_width(value)) - 1;
    return std::min(kBuckets - 1, (octave - 1) * 4 + static_cast<unsigned>(value >> (octave - 2) & 3));
  }
  static Nanos first_of(unsigned index) {
    if (index < 4) return index;
    const unsigned octave = index / 4 + 1;
    return static_cast<Nanos>((4ull | (index & 3)) << (octave - 2));
  }
  Kind& at(OperationKind kind) { return kinds_[static_cast<unsigned>(kind)]; }
  const Kind& at(OperationKind kind) const { return kinds_[static_cast<unsigned>(kind)]; }

  std::array<Kind, 4> kinds_{};
};

}  // namespace gputrace
