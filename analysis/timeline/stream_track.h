// One stream as the device sees it, its operations in the order of their starts: busy time, the end before the next
// one, and how deep its queue was at each launch. Memory: the starts of at most kMostQueued operations.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/device_facts.h"
#include "base/types.h"

namespace gputrace {

class StreamTrack {
 public:
  static constexpr std::size_t kMostQueued = 4096;

  Nanos end() const { return end_; }  // largest end so far; 0: none

  void ran(StreamTimes& times, Nanos start, Nanos end) {
    if (times.operations++ == 0) times.first = start;
    if (end > end_) times.busy_ns += static_cast<u64>(end - std::max(end_, start));
    end_ = std::max(end_, end);
    times.last = end_;
  }

  // The operation that was launched at `launched` and started at `start`. Returns how many operations of the stream had
  // been launched and had not started just after that launch, itself included; kMostQueued means at least that.
  u32 queued(StreamTimes& times, Nanos launched, Nanos start) {
    // Starts come in order: those after the launch are the newest.
    std::size_t low = 0, high = std::min(count_, kMostQueued);
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (starts_[(count_ - 1 - middle) & (kMostQueued - 1)] > launched)
        low = middle + 1;
      else
        high = middle;
    }
    const u32 depth = static_cast<u32>(std::min(low + 1, kMostQueued));
    if (starts_.size() < kMostQueued)
      starts_.push_back(start);
    else
      starts_[count_ & (kMostQueued - 1)] = start;
    ++count_;
    ++times.joined;
    times.waited_ns += start > launched ? static_cast<u64>(start - launched) : 0;
    times.deepest = std::max(times.deepest, depth);
    return depth;
  }

 private:
  std::vector<Nanos> starts_;  // ring
  std::size_t count_ = 0;
  Nanos end_ = 0;
};

}  // namespace gputrace
