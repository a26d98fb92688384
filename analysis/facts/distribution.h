// Count, sum, extremes and percentiles of durations.
//   · Count, sum, minimum and maximum are exact.
//   · Percentiles are exact up to kExactValues values (nearest rank: the smallest value that at least p of all are not
//     above); beyond that a log-linear histogram answers within 2 % (buckets of 1/64 of their power of two: <= 0.8 %).
//   · Memory: 4 bytes a value up to 4 MB (values above 4.29 s take 8 bytes more), then 30 KB.
#pragma once

#include <vector>

#include "base/types.h"

namespace gputrace {

class Distribution {
 public:
  static constexpr u64 kExactValues = 1'000'000;

  void add(u64 value) {
    if (count_ == 0 || value < min_) min_ = value;
    if (value > max_) max_ = value;
    ++count_;
    sum_ += value;
    if (!buckets_.empty()) return count_in_bucket(value, 1);
    if (value <= kSmallMax) {
      small_.push_back(static_cast<u32>(value));
    } else {
      large_.push_back(value);
    }
    if (count_ > kExactValues) to_histogram();
  }
  void merge(const Distribution& other);

  u64 count() const { return count_; }
  u64 sum() const { return sum_; }
  u64 min() const { return min_; }
  u64 max() const { return max_; }
  u64 mean() const { return count_ ? (sum_ + count_ / 2) / count_ : 0; }
  bool approximate() const { return !buckets_.empty(); }
  // p in 0…1. 0 when empty.
  u64 percentile(double p) const;

 private:
  static constexpr u64 kSmallMax = 0xffffffffull;

  void to_histogram();
  void count_in_bucket(u64 value, u64 times);

  u64 count_ = 0;
  u64 sum_ = 0;
  u64 min_ = 0;
  u64 max_ = 0;
  mutable std::vector<u32> small_;  // reordered by percentile(), never changed otherwise
  mutable std::vector<u64> large_;
  std::vector<u64> buckets_;  // empty while exact
};

}  // namespace gputrace
