// Puts device operations in the order of their starts, as far as they come less than `most / 2` operations late.
//   · When half of `most` and an eighth more of that are there, the oldest leave, in order; finish() gives the rest.
//   · What starts together keeps the order in which it came.
//   · `give` is called with each operation; where it has them, give.soon() and then give.next() are called with those
//     that come a little later, so that what they lead to can be fetched from memory meanwhile. What give.next() returned is
//     given with the operation: kNext operations are given in between at most.
//   · Memory: 64 bytes an operation and 48 for the order.
#pragma once

#include <algorithm>
#include <utility>

#include "analysis/gaps/operations.h"
#include "analysis/read/paged_array.h"
#include "analysis/read/time_window.h"

namespace gputrace {

class ReorderWindow {
 public:
  // Half of it, a quarter of a million operations, is far more than the records of one device come late by (CUPTI hands its
  // buffers over by the thousand); twice as much costs memory and misses of the cache, and puts nothing more in order.
  static constexpr std::size_t kMost = 1u << 19;
  static constexpr u32 kNext = 16;

  explicit ReorderWindow(std::size_t most = kMost)
      : kept_(most / 2),
        step_(most / 16),
        operations_(kept_ + step_),
        order_((kept_ + step_) * 2 + kFar),
        fresh_(step_ + kept_),
        scratch_(kept_ + step_),
        free_(kept_ + step_) {}

  // `ran`: the operation's times, whatever stands in it.
  template <typename Give>
  void add(const DeviceOperation& operation, const TimeSpan& ran, Give&& give) {
    u32 slot;
    if (free_count_ == 0) {
      slot = used_++;
    } else {
      slot = free_[--free_count_];
      if (free_count_ > kSoonWritten) __builtin_prefetch(&operations_[free_[free_count_ - kSoonWritten]], 1);
    }
    DeviceOperation& kept = operations_[slot];
    kept = operation;
    kept.start = ran.from, kept.end = ran.to;
    fresh_[fresh_count_++] = {ran.from, slot, 0};
    if (fresh_count_ == room_) release(step_, give);
  }
  template <typename Give>
  void finish(Give&& give) {
    release(end_ - begin_ + fresh_count_, give);
  }

 private:
  static constexpr std::size_t kSoonWritten = 8, kFar = 48, kSoon = 32;

  struct Place {
    Nanos start;
    u32 slot;
    u32 found = 0;  // what give.next() returned
  };
  static bool earlier(const Place& a, const Place& b) { return a.start < b.start; }

  template <typename Give>
  void release(std::size_t count, Give& give) {
    if (count == 0) return;
    sort_fresh();
    merge_fresh();
    // Those that are looked at ahead: the newest again, beyond all.
    std::fill_n(&order_[end_], kFar, order_[end_ - 1]);
    for (std::size_t i = 0; i != kNext; ++i) find_next(begin_ + i, give);
    for (const std::size_t last = begin_ + count; begin_ != last; ++begin_) {
      look_ahead(give);
      const u32 slot = order_[begin_].slot;
      if constexpr (requires { give(operations_[slot], u32{}); })
        give(operations_[slot], order_[begin_].found);
      else
        give(operations_[slot]);
      free_[free_count_++] = slot;
    }
    std::reverse(&free_[0] + free_count_ - count, &free_[0] + free_count_);  // the oldest slot is the next one
    if (begin_ == end_) begin_ = end_ = 0;
    room_ = kept_ + step_ - (end_ - begin_);
  }

  template <typename Give>
  [[gnu::always_inline]] inline void look_ahead(Give& give) {
    __builtin_prefetch(&operations_[order_[begin_ + kFar].slot]);
    if constexpr (requires(const DeviceOperation& operation) { give.soon(operation); })
      give.soon(operations_[order_[begin_ + kSoon].slot]);
    find_next(begin_ + kNext, give);
  }
  template <typename Give>
  [[gnu::always_inline]] inline void find_next(std::size_t at, Give& give) {
    if constexpr (requires(const DeviceOperation& operation) { give.next(operation); })
      order_[at].found = give.next(operations_[order_[at].slot]);
  }

  // They come nearly in order, each a few places from its own: to move those is less than three passes over all. False: too many
  // had to move, and the rest is as it came.
  bool sort_by_moves() {
    std::size_t left = 2 * fresh_count_;
    for (std::size_t i = 1; i < fresh_count_; ++i) {
      const Place moved = fresh_[i];
      std::size_t to = i;
      for (; to != 0 && earlier(moved, fresh_[to - 1]); --to) fresh_[to] = fresh_[to - 1];
      if (to == i) continue;
      fresh_[to] = moved;
      if (i - to > left) return false;
      left -= i - to;
    }
    return true;
  }

  // By digits, the lowest first: as many of 11 bits as the starts differ in.
  void sort_fresh() {
    if (sort_by_moves()) return;
    Nanos least = fresh_[0].start, most = least;
    for (std::size_t i = 1; i < fresh_count_; ++i) {
      least = std::min(least, fresh_[i].start);
      most = std::max(most, fresh_[i].start);
    }
    constexpr unsigned kBits = 11;
    constexpr u64 kMask = (1u << kBits) - 1;
    const u64 range = static_cast<u64>(most) - static_cast<u64>(least);
    if (fresh_count_ < kMask) {
      std::stable_sort(&fresh_[0], &fresh_[0] + fresh_count_, earlier);
      return;
    }
    for (unsigned shift = 0; shift < 64 && range >> shift != 0; shift += kBits) {
      const auto digit = [least, shift](const Place& place) {
        return (static_cast<u64>(place.start) - static_cast<u64>(least)) >> shift & kMask;
      };
      u32 next[kMask + 1] = {};
      for (std::size_t i = 0; i < fresh_count_; ++i) ++next[digit(fresh_[i])];
      u32 sum = 0;
      for (u32& each : next) sum += std::exchange(each, sum);
      for (std::size_t i = 0; i < fresh_count_; ++i) scratch_[next[digit(fresh_[i])]++] = fresh_[i];
      fresh_.swap(scratch_);
    }
  }

  // Most of what waits starts before anything that is new: only the end is merged.
  void merge_fresh() {
    if (fresh_count_ == 0) return;
    if (end_ + fresh_count_ + kFar > order_.size()) {
      std::copy(&order_[begin_], &order_[0] + end_, &order_[0]);
      end_ -= begin_;
      begin_ = 0;
    }
    Place* const waiting = &order_[0];
    std::size_t left = end_, fresh = fresh_count_;
    std::size_t to = end_ = end_ + fresh_count_;
    while (fresh != 0) {
      if (left != begin_ && waiting[left - 1].start > fresh_[fresh - 1].start)
        waiting[--to] = waiting[--left];
      else
        waiting[--to] = fresh_[--fresh];
    }
    fresh_count_ = 0;
  }

  const std::size_t kept_, step_;
  std::size_t room_ = kept_ + step_;  // in fresh_, until the next release
  PagedArray<DeviceOperation> operations_;
  PagedArray<Place> order_;            // [begin_, end_): what waits, by start
  PagedArray<Place> fresh_, scratch_;  // what came since the last release
  PagedArray<u32> free_;
  std::size_t begin_ = 0, end_ = 0, fresh_count_ = 0, free_count_ = 0;
  u32 used_ = 0;
};

}  // namespace gputrace
