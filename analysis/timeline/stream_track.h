// One stream as the device sees it, its operations in the order of their starts: busy time, the end before the next
// one, and how deep its queue was. Memory: 8 bytes an operation that waits, for at most kMostQueued of them.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/facts/device_facts.h"
#include "base/types.h"

namespace gputrace {

class StreamTrack {
 public:
  Nanos end() const { return end_; }  // largest end so far; 0: none

  // An operation that starts then, and cannot before what is before it has ended, overlaps with that.
  bool overlaps(Nanos start) const { return start < end_ && alone_; }

  // `alone`: nothing of its stream may run beside it.
  void ran(StreamTimes& times, Nanos start, Nanos end, bool alone) {
    if (times.operations++ == 0) times.first = start;
    if (end > end_) {
      times.busy_ns += static_cast<u64>(end - std::max(end_, start));
      alone_ = alone;
      end_ = end;
    }
    times.last = end_;
  }

  // The operation that was launched at `launched` and started at `start`; `call_ns`: time in its call, -1 where an
  // operation before it came from the same call. Returns how many operations of the stream had been launched and had
  // not started just after that launch, itself included. `kept`: how long each depth lasted, and what calls cost then, is wanted too.
  u32 queued(StreamTimes& times, Nanos launched, Nanos call_ns, Nanos start, bool kept) {
    launched = std::max(launched, swept_);
    if (kept)
      sweep(times.queue, launched);
    else
      skip(launched);
    const u32 found = waiting();
    if (found == kMostQueued) ++first_;
    push(std::max(start, launched));
    if (kept && call_ns >= 0) times.queue.launched(found, call_ns);
    times.queue.deepest = std::max(times.queue.deepest, waiting());
    ++times.joined;
    return waiting();
  }

  // What waits beyond the newest operation that is counted is not counted either.
  void finish(StreamTimes& times) {
    if (waiting() && start_of(next_ - 1) <= times.last) sweep(times.queue, start_of(next_ - 1));
  }

 private:
  static constexpr std::size_t kFirstSize = 64;

  u32 waiting() const { return static_cast<u32>(next_ - first_); }
  Nanos start_of(u64 number) const { return starts_[number & mask_]; }

  // Starts come in order, so up to the newest launch all is known.
  void sweep(QueueDepth& queue, Nanos to) {
    if (!begun_) begun_ = true, swept_ = to;
    for (; first_ != next_ && start_of(first_) <= to; ++first_) {
      queue.lasted(waiting(), swept_, start_of(first_));
      swept_ = std::max(swept_, start_of(first_));
    }
    queue.lasted(waiting(), swept_, to);
    swept_ = std::max(swept_, to);
  }

  void skip(Nanos to) {
    while (first_ != next_ && start_of(first_) <= to) ++first_;
    begun_ = true, swept_ = to;
  }

  void push(Nanos start) {
    if (next_ - first_ == room_) [[unlikely]]
      grow();
    starts_[next_++ & mask_] = start;
  }

  [[gnu::noinline]] void grow() {
    std::vector<Nanos> larger(std::max(kFirstSize, starts_.size() * 2));
    for (u64 number = first_; number != next_; ++number) larger[number & (larger.size() - 1)] = start_of(number);
    starts_.swap(larger);
    room_ = starts_.size();
    mask_ = room_ - 1;
  }

  std::vector<Nanos> starts_;  // ring: of what was launched and has not started at swept_
  u64 room_ = 0, mask_ = 0;    // its size, which is a power of two
  u64 first_ = 0, next_ = 0;   // numbers in it
  bool begun_ = false;
  Nanos swept_ = 0;
  Nanos end_ = 0;
  bool alone_ = false;  // what ended then
};

}  // namespace gputrace
