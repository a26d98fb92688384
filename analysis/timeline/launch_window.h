// The newest operations that the host gave to its devices, by sequence number, waiting for their device records.
//   · Operations come in the order of the ends of their calls.
//   · Room for kLeast of them, and for more as device records lie further behind their calls, up to kMost; the oldest leave
//     first, and those that were not answered by then are counted.
//   · One thread.
#pragma once

#include <vector>

#include "analysis/gaps/operations.h"
#include "analysis/read/paged_array.h"
#include "analysis/read/time_window.h"
#include "analysis/timeline/correlation_index.h"
#include "analysis/timeline/host_streams.h"

namespace gputrace {

// A driver or runtime call as CUPTI numbered it, on the host's clock.
struct KeyedCall {
  Nanos begin = 0, end = 0;
  u32 correlation = 0;
  u32 thread = kNone;  // index in TraceReader::threads()
  u32 callback = 0;
  bool runtime = false;  // it contains the driver call
  bool jumped =
      false;  // the clock jumped hereabouts, or may have: its time says little, the order of the thread's keys more
};

class LaunchWindow {
 public:
  static constexpr u32 kMost = 2u << 20;
  static constexpr u32 kLeast = 64u << 10;
  // What is kept behind the newest operation that had its turn: records of other streams and late keys still ask for it.
  static constexpr u32 kHistory = 128u << 10;

  explicit LaunchWindow(std::size_t threads) : threads_(threads) {}

  HostStreams& streams() { return streams_; }
  const HostStreams& streams() const { return streams_; }
  // As it lies in the window, with its stream and what it waits for; its sequence number is next() - 1. nullptr: there are no numbers
  // left.
  HostOperation* add(const HostOperation& operation, u32 stream);
  // The thread's operations from `begin` on belong to a collective.
  void mark_collective(u32 thread, Nanos begin);

  HostOperation* find(u32 sequence) { return holds(sequence) ? &ring_[sequence & mask_] : nullptr; }
  const HostOperation* find(u32 sequence) const { return holds(sequence) ? &ring_[sequence & mask_] : nullptr; }
  template <typename Visit>
  void for_each_wait(const HostOperation& operation, Visit&& visit) const {
    if (operation.waits_count == 1) return visit(operation.waits);
    if (operation.waits_count && waits_next_ - operation.waits > kWaitRing) return;  // overwritten
    for (u32 i = 0; i < operation.waits_count; ++i) visit(waits_[(operation.waits + i) & (kWaitRing - 1)]);
  }

  // Ties a correlation id to the operation that lies in that call. `error`: of the two clocks; by how much they are off within it is
  // learned from the calls that stand alone.
  void key(const KeyedCall& call, Nanos error);
  void tie(u32 correlation, u32 sequence) {
    if (correlation) correlations_.put(correlation, sequence, oldest_);
  }
  u32 keyed(u32 correlation) const { return correlations_.find(correlation, oldest_); }
  // Bring close what keyed() and then find() will read. Always inline: a compiler takes a function that only prefetches
  // for one that does nothing.
  [[gnu::always_inline]] inline void expect_keyed(u32 correlation) const { correlations_.expect(correlation); }
  [[gnu::always_inline]] inline void expect(u32 sequence) const { __builtin_prefetch(&ring_[sequence & mask_]); }

  // What devices did of the operations that were given to a stream.
  struct Ended {
    Nanos end = 0;       // largest of its operations so far
    u32 device = kNone;  // that they run on, by index
  };
  Ended& ended(u32 stream) { return heads_[stream].ended; }
  const Ended& ended(u32 stream) const { return heads_[stream].ended; }
  // Operations of a stream in order, for joining by order.
  u32 first_waiting(u32 stream) const { return stream < heads_.size() ? heads_[stream].first : kNone; }
  // Everything of that stream up to this operation had its turn. What the first of those before it is that a device
  // worked for and that nothing was heard of; kNone: there is none.
  u32 passed(u32 sequence);
  // The first operation of each stream that a device should have worked for and that nothing was heard of yet.
  template <typename Visit>
  void for_each_unheard(Visit&& visit) const {
    for (const Head& head : heads_) {
      const u32 first = unheard(head.first, kNone);
      if (first != kNone) visit(*find(first));
    }
  }

  // Device records will come, or came: from here on the window grows with what waits for them.
  void set_active() { active_ = true; }
  u32 size() const { return next_ - oldest_; }
  u32 oldest() const { return oldest_; }
  u32 next() const { return next_; }
  u64 forgotten() const { return forgotten_; }
  // How far a call as CUPTI timed it lay outside of ours at most: what the two clocks are off at least.
  Nanos farthest() const { return farthest_; }

 private:
  // Not kNone, which next_ stays below.
  bool holds(u32 sequence) const { return sequence - oldest_ < next_ - oldest_; }

  static constexpr u32 kWaitRing = 4u << 20;
  struct Thread {
    u32 newest = kNone;
    u32 keyed = kNone;  // newest operation that got a key
  };
  struct Head {
    u32 first = kNone, last = kNone;
    Ended ended;
  };

  void make_room();
  void grow();
  void keep_waits(HostOperation& made);
  u32 next_that_holds(const Thread& thread, const KeyedCall& call, TimeSpan fitted, int kind) const;
  u32 unheard(u32 from, u32 to) const;
  // `fitted`: the call's time by our clock. `kind`: what it gives to a device, see driver_callback_kind().
  u32 search(const KeyedCall& call, TimeSpan fitted, int kind, Nanos error);
  u32 nearest(const KeyedCall& call, TimeSpan fitted, int kind, Nanos error);

  HostStreams streams_;
  CorrelationIndex correlations_;
  PagedArray<HostOperation> ring_{kMost};  // of which mask_ + 1 are used
  std::vector<Thread> threads_;
  std::vector<Head> heads_;  // by stream
  std::vector<u32> waits_;   // ring of lists longer than one
  std::vector<u32> scratch_;
  u32 waits_next_ = 0;
  u32 mask_ = kLeast - 1, oldest_ = 0, next_ = 0;
  u32 newest_passed_ = 0;  // newest operation that had its turn
  u64 forgotten_ = 0;
  Nanos farthest_ = 0;
  Nanos misfit_ = 0;  // by how much later CUPTI's calls are than ours, as the newest key showed
  bool active_ = false;
};

// What a callback id gives to a device: -1 nothing (a wait), else the kind; kUnknownCallback: not one that we know.
inline constexpr int kNothing = -1, kUnknownCallback = -2;
int driver_callback_kind(u32 callback);

}  // namespace gputrace
