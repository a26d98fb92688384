// When tracing itself, or the driver's own work, held a thread: what CUPTI reports as overhead, on the host's clock.
//   · Kept until no gap can ask for it any more; at most kMost entries, the oldest go first.
//   · Entries may overlap: between() gives each instant once, to the entry that began first.
#pragma once

#include <algorithm>
#include <deque>

#include "analysis/facts/device_facts.h"
#include "base/types.h"

namespace gputrace {

class OverheadLog {
 public:
  static constexpr u32 kAnyThread = kNone - 1;  // CUPTI did not tell the thread
  static constexpr std::size_t kMost = 1u << 16;
  struct Entry {
    Nanos begin = 0, end = 0;
    u32 thread = kNone;  // index in TraceReader::threads(); kNone: a thread that is not in the trace
    IdleCause cause = IdleCause::Collection;
  };

  void add(const Entry& made) {
    if (made.end <= made.begin || made.thread == kNone) return;
    const auto earlier = [](const Entry& a, const Entry& b) { return a.begin < b.begin; };
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), made, earlier), made);
    longest_ = std::max(longest_, made.end - made.begin);
    if (entries_.size() > kMost) entries_.pop_front();
  }

  // Calls `visit(cause, length)` for the parts of [begin, end) in which that thread was held; entries of an untold
  // thread count where `any`.
  template <typename Visit>
  void between(u32 thread, bool any, Nanos begin, Nanos end, Visit&& visit) const {
    if (entries_.empty() || end <= begin) return;
    const Nanos from = begin - longest_;
    auto at = std::lower_bound(entries_.begin(), entries_.end(), from,
                               [](const Entry& entry, Nanos time) { return entry.begin < time; });
    for (Nanos done = begin; at != entries_.end() && at->begin < end; ++at) {
      if (at->thread != thread && !(any && at->thread == kAnyThread)) continue;
      const Nanos first = std::max(at->begin, done), last = std::min(at->end, end);
      if (last <= first) continue;
      visit(at->cause, last - first);
      done = last;
    }
  }

  // No gap that begins before `time` will be asked about any more.
  void trim(Nanos time) {
    while (!entries_.empty() && entries_.front().end < time) entries_.pop_front();
  }

 private:
  std::deque<Entry> entries_;  // by begin
  Nanos longest_ = 0;
};

}  // namespace gputrace
