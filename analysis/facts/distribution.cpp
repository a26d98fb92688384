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

void Distribution::Sums::add(u64 value, u64 times) {
  if (times != 0) add(Sums{times, times * value, value, value});
}

void Distribution::Sums::add(const Sums& other) {
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = std::max(max, other.max);
  count += other.count;
  sum += other.sum;
}

void Distribution::Sums::add(const std::vector<u32>& values) {
  u32 least = ~0u, most = 0;
  u64 all = 0;
  for (const u32 value : values) {
    least = std::min(least, value), most = std::max(most, value);
    all += value;
  }
  add(Sums{values.size(), all, least, most});
}

void Distribution::count_in_bucket(u64 value, u64 times) const { buckets_[bucket_of(value)] += times; }

[[gnu::noinline]] void Distribution::add_large(u64 value) {
  apart_.add(value);
  large_.push_back(value);
  if (approximate()) to_histogram();
}

// Room is made for no more at a time than is sorted out next.
[[gnu::noinline]] void Distribution::add_with_room(u32 value) {
  constexpr std::size_t kFirst = 4;
  if (small_.size() >= settle_at_) settle();
  if (small_.size() == small_.capacity())
    small_.reserve(std::min<std::size_t>(settle_at_, std::max(kFirst, 2 * small_.size())));
  small_.push_back(value);
}

void Distribution::sum_up() const {
  sums_ = apart_;
  for (std::size_t i = 0; i < counts_.size(); ++i) sums_.add(first_ + i, counts_[i]);
  sums_.add(small_);
}

// All that is kept goes there.
void Distribution::to_histogram() const {
  if (buckets_.empty()) buckets_.assign(kBuckets, 0);
  apart_.add(small_);
  for (const u32 value : small_) count_in_bucket(value, 1);
  for (const u64 value : large_) count_in_bucket(value, 1);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    apart_.add(first_ + i, counts_[i]);
    count_in_bucket(first_ + i, counts_[i]);
  }
  small_.clear();
  large_.clear();
  counts_ = {};
  counted_ = 0;
  settle_at_ = kStep;
}

// Makes the range hold both values, where that does not make it too wide: most distributions hold few values, and there are many.
void Distribution::widen(u64 first, u64 last, u64 values) const {
  if (!counts_.empty()) {
    first = std::min<u64>(first, first_);
    last = std::max<u64>(last, first_ + counts_.size() - 1);
  }
  if (last - first >= std::min(kWidest, 2 * values) || last > kSmallMax) return;
  std::vector<u32> wider(last - first + 1);
  if (!counts_.empty())
    std::copy(counts_.begin(), counts_.end(), wider.begin() + static_cast<std::ptrdiff_t>(first_ - first));
  counts_ = std::move(wider);
  first_ = static_cast<u32>(first);
}

// Counts those of small_ that lie in the range.
void Distribution::sort_out() const {
  auto kept = small_.begin();
  for (const u32 value : small_) {
    if (in_range(value))
      ++counts_[value - first_];
    else
      *kept++ = value;
  }
  counted_ += static_cast<u64>(small_.end() - kept);
  small_.erase(kept, small_.end());
}

// Where many lie outside, the range is made to hold the middle of them, with room around it.
void Distribution::settle() const {
  if (approximate()) return to_histogram();
  sort_out();
  if (small_.size() >= kStep / 4) {
    const auto eighth = static_cast<std::ptrdiff_t>(small_.size() / 8);
    std::nth_element(small_.begin(), small_.begin() + eighth, small_.end());
    std::nth_element(small_.begin() + eighth, small_.end() - eighth, small_.end());
    const u64 low = small_[static_cast<std::size_t>(eighth)], high = *(small_.end() - eighth);
    widen(low - std::min(low, (high - low) / 2 + 16), high + (high - low) / 2 + 16, count());
    sort_out();
  }
  settle_at_ = static_cast<u32>(std::max<std::size_t>(small_.size() * 2, small_.size() + kStep));
}

void Distribution::merge(const Distribution& other) {
  const u64 values = count() + other.count();
  if (other.count() == 0) return;
  apart_.add(other.apart_);
  small_.insert(small_.end(), other.small_.begin(), other.small_.end());
  large_.insert(large_.end(), other.large_.begin(), other.large_.end());
  if (values > kExactValues) {
    to_histogram();
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      apart_.add(other.first_ + i, other.counts_[i]);
      count_in_bucket(other.first_ + i, other.counts_[i]);
    }
    for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    return;
  }
  if (!other.counts_.empty()) widen(other.first_, other.first_ + other.counts_.size() - 1, values);
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    const u32 value = other.first_ + static_cast<u32>(i);
    if (in_range(value))
      counts_[value - first_] += other.counts_[i], counted_ += other.counts_[i];
    else
      small_.insert(small_.end(), other.counts_[i], value);
  }
}

// The value of that rank, from 0: what is kept below the range, what was counted in it, what is kept above.
u64 Distribution::exact_rank(u64 rank) const {
  const auto pick = [](auto& values, u64 at) -> u64 {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(at);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  sort_out();
  const u64 small = counted_ + small_.size(), counted = counted_;
  if (rank >= small) return pick(large_, rank - small);
  u64 before =
      static_cast<u64>(std::count_if(small_.begin(), small_.end(), [this](u32 value) { return value < first_; }));
  if (counted == 0 || rank < before) return pick(small_, rank);
  if (rank >= before + counted) return pick(small_, rank - counted);
  std::size_t at = 0;
  for (; (before += counts_[at]) <= rank; ++at) {
  }
  return first_ + at;
}

u64 Distribution::percentile(double p) const {
  const u64 all = count();
  if (all == 0) return 0;
  const double wanted = std::ceil(p * static_cast<double>(all) - 1e-9);
  const u64 rank = std::clamp<u64>(wanted < 1 ? 1 : static_cast<u64>(wanted), 1, all) - 1;
  if (all <= kExactValues) return exact_rank(rank);
  to_histogram();
  u64 below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below > rank) return std::clamp(value_of(i), min(), max());
  }
  return max();
}

}  // namespace gputrace
