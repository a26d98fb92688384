// Count, sum, extremes and percentiles of durations.
//   · Count, sum, minimum and maximum are exact.
//   · Percentiles are exact up to kExactValues values (nearest rank: the smallest value that at least p of all are not
//     above); beyond that a log-linear histogram answers within 2 % (buckets of 1/64 of their power of two: <= 0.8 %).
//   · Values that lie close together, as durations of one kernel do, are counted one by one in a range of their own; the
//     others are kept. Memory: 4 bytes a value of that range, at most kWidest of them and at most two for each value that
//     came, and 4 bytes for each other value (above 4.29 s: 8); beyond kExactValues 30 KB.
//   · Values are gathered before they are counted: among hundreds of kernels each count lies far from the one before it, and what is
//     fetched for many at a time costs a fraction of as many single fetches. What was counted is summed when somebody asks.
//   · One thread, those that only read included.
#pragma once

#include <vector>

#include "base/types.h"

namespace gputrace {

class Distribution {
 public:
  static constexpr u64 kExactValues = 1'000'000;

  void add(u64 value) {
    if (value > kSmallMax) [[unlikely]]
      return add_large(value);
    if (small_.size() == small_.capacity()) [[unlikely]]
      return add_with_room(static_cast<u32>(value));
    small_.push_back(static_cast<u32>(value));
  }
  void merge(const Distribution& other);

  u64 count() const { return apart_.count + counted_ + small_.size(); }
  u64 sum() const { return sums().sum; }
  u64 min() const { return sums().min; }
  u64 max() const { return sums().max; }
  u64 mean() const { return count() ? (sum() + count() / 2) / count() : 0; }
  bool approximate() const { return count() > kExactValues; }
  // p in 0…1. 0 when empty.
  u64 percentile(double p) const;

 private:
  static constexpr u64 kSmallMax = 0xffffffffull;
  static constexpr u32 kStep = 1024;        // values that are put in their places at a time
  static constexpr u64 kWidest = 64 << 10;  // of the range that is counted value by value

  struct Sums {
    u64 count = 0, sum = 0, min = 0, max = 0;
    void add(u64 value, u64 times = 1);
    void add(const std::vector<u32>& values);
    void add(const Sums& other);
  };

  void add_large(u64 value);
  void add_with_room(u32 value);
  const Sums& sums() const {
    if (sums_.count != count()) sum_up();
    return sums_;
  }
  void sum_up() const;
  void to_histogram() const;
  void count_in_bucket(u64 value, u64 times) const;
  void settle() const;
  void sort_out() const;
  bool in_range(u32 value) const { return value - first_ < counts_.size(); }
  void widen(u64 first, u64 last, u64 values) const;
  u64 exact_rank(u64 rank) const;

  // Where a value is kept is nobody's business: what reads puts it in its place too. What add() touches comes first.
  mutable std::vector<u32> small_;    // those outside of the range, and the newest ones
  mutable u32 settle_at_ = kStep;     // size of small_ from which on it is sorted out
  mutable u32 first_ = 0;             // of the range
  mutable std::vector<u32> counts_;   // of the values first_, first_ + 1, …
  mutable u64 counted_ = 0;           // sum of counts_
  mutable std::vector<u64> large_;    // above kSmallMax
  mutable std::vector<u64> buckets_;  // empty while exact
  mutable Sums apart_;                // of what is in neither small_ nor counts_
  mutable Sums sums_;                 // of as many values as it says; where that is all, of all
};

}  // namespace gputrace
