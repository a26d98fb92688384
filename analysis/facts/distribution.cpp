#include "analysis/facts/distribution.h"

#include <algorithm>
#include <cmath>

namespace gputrace {
namespace {

// Values below 2 * kSteps have a bucket each; above, each power of two is cut into kSteps buckets.
constexpr unsigned kStepBits = 6;
constexpr u64 kSteps = 1u << kStepBits;
constexpr std::size_t kBuckets = (64 - kStepBits + 1) * kSteps;

std::size_t bucket_of(u64 value) {
  if (value < 2 * kSteps) return value;
  const unsigned power = 63u - static_cast<unsigned>(__builtin_clzll(value));
  const unsigned shift = power - kStepBits;
  return (static_cast<std::size_t>(shift) << kStepBits) + (value >> shift);
}

// The middle of a bucket: at most half a bucket from every value in it.
u64 value_of(std::size_t bucket) {
  if (bucket < 2 * kSteps) return bucket;
  const unsigned shift = static_cast<unsigned>(bucket >> kStepBits) - 1;
  const u64 low = (bucket - (static_cast<u64>(shift) << kStepBits)) << shift;
  return low + ((1ull << shift) - 1) / 2;
}

}  // namespace

void Distribution::count_in_bucket(u64 value, u64 times) { buckets_[bucket_of(value)] += times; }

void Distribution::to_histogram() {
  buckets_.assign(kBuckets, 0);
  for (const u32 value : small_) count_in_bucket(value, 1);
  for (const u64 value : large_) count_in_bucket(value, 1);
  small_ = {};
  large_ = {};
}

void Distribution::merge(const Distribution& other) {
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
  if (buckets_.empty() && (other.approximate() || count_ > kExactValues)) to_histogram();
  if (buckets_.empty()) {
    small_.insert(small_.end(), other.small_.begin(), other.small_.end());
    large_.insert(large_.end(), other.large_.begin(), other.large_.end());
    return;
  }
  for (const u32 value : other.small_) count_in_bucket(value, 1);
  for (const u64 value : other.large_) count_in_bucket(value, 1);
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
}

u64 Distribution::percentile(double p) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(p * static_cast<double>(count_) - 1e-9);
  const u64 rank = std::clamp<u64>(wanted < 1 ? 1 : static_cast<u64>(wanted), 1, count_) - 1;
  if (buckets_.empty()) {
    if (rank < small_.size()) {
      std::nth_element(small_.begin(), small_.begin() + static_cast<std::ptrdiff_t>(rank), small_.end());
      return small_[rank];
    }
    const std::size_t at = rank - small_.size();
    std::nth_element(large_.begin(), large_.begin() + static_cast<std::ptrdiff_t>(at), large_.end());
    return large_[at];
  }
  u64 below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below > rank) return std::clamp(value_of(i), min_, max_);
  }
  return max_;
}

}  // namespace gputrace
