// What ran on devices of what was launched within NVTX ranges: of each range that a thread pushed, from the begin of the first to
// the end of the last operation that the thread launched in it, and the kernels among them, those of ranges within included.
//   · Device records come late: a range is found again by its thread and the time of the call.
//   · Memory: 48 bytes a range, at most kMost ranges; those beyond have no device time, and are counted.
//   · One thread.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/facts/timeline_facts.h"

namespace gputrace {

class RangeProjection {
 public:
  static constexpr std::size_t kMost = 1u << 20;

  explicit RangeProjection(std::size_t threads) : threads_(threads) {}

  // `totals`: number in ProcessTrace::nvtx; kNone: of a range that does not count.
  void pushed(u32 thread, Nanos at, u32 totals) {
    Thread& own = threads_[thread];
    if (count_ == kMost) {
      ++own.left_out;
      return;
    }
    ++count_;
    own.ranges.push_back({at, kEver, 0, 0, own.innermost, totals, 0});
    own.until = std::min(own.until, at);
    own.innermost = static_cast<u32>(own.ranges.size() - 1);
  }
  void popped(u32 thread, Nanos at) {
    Thread& own = threads_[thread];
    if (own.left_out != 0) return static_cast<void>(--own.left_out);
    if (own.innermost == kNone) return;
    own.ranges[own.innermost].end = at;
    own.innermost = own.ranges[own.innermost].parent;
  }
  // Records of that thread were lost: nothing is known to be open.
  void lost(u32 thread, Nanos at) {
    threads_[thread].left_out = 0;
    while (threads_[thread].innermost != kNone) popped(thread, at);
  }

  bool any() const { return count_ != 0; }
  // An operation that the thread gave to a device with a call that began then.
  void ran(u32 thread, Nanos called, Nanos start, Nanos end, bool kernel) {
    if (thread >= threads_.size()) return;
    Thread& own = threads_[thread];
    if (called < own.from || called >= own.until) own.find(called);
    for (u32 at = own.found; at != kNone; at = own.ranges[at].parent) {
      Range& range = own.ranges[at];
      if (range.end <= called) continue;
      if (range.last == 0 || start < range.first) range.first = start;
      range.last = std::max(range.last, end);
      range.kernels += kernel;
    }
  }

  // By number in ProcessTrace::nvtx; may be shorter.
  std::vector<ProjectedRanges> finish() const {
    std::vector<ProjectedRanges> sums;
    for (const Thread& thread : threads_) {
      for (const Range& range : thread.ranges) {
        if (range.totals == kNone || range.last == 0) continue;
        ProjectedRanges& sum = entry_at(sums, range.totals);
        sum.device_ns += static_cast<u64>(range.last - range.first);
        sum.kernels += range.kernels;
      }
    }
    return sums;
  }

 private:
  static constexpr Nanos kEver = std::numeric_limits<Nanos>::max();

  struct Range {
    Nanos begin, end;
    Nanos first, last;  // of its operations on a device; 0: none yet
    u32 parent, totals, kernels;
  };
  struct Thread {
    std::vector<Range> ranges;
    u32 innermost = kNone;
    u64 left_out = 0;  // pushed now and not kept
    u32 found =
        kNone;  // the newest range that had begun at any time of [from, until): the next operation is mostly of the same
    Nanos from = 0, until = 0;

    [[gnu::noinline]] void find(Nanos time) {
      const auto after = std::upper_bound(ranges.begin(), ranges.end(), time,
                                          [](Nanos value, const Range& range) { return value < range.begin; });
      found = after == ranges.begin() ? kNone : static_cast<u32>(after - ranges.begin()) - 1;
      from = found == kNone ? std::numeric_limits<Nanos>::min() : ranges[found].begin;
      until = after == ranges.end() ? kEver : after->begin;
    }
  };
  std::vector<Thread> threads_;
  std::size_t count_ = 0;
};

}  // namespace gputrace
