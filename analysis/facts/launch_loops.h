// Loops of launches as a thread makes them: the same launches again and again between two waits (a CUDA graph could
// replay them), and waits that nothing needed. A wait may be needed by what was given before it: a copy to the host, whose
// result is read after it, or one from pinned memory, which is written anew; by an event behind which more was given (it
// holds the host some steps ahead, no more); by a free; and where the host sees the device's memory, always.
// A wait for a small result (`loss.item()`, `logits.cpu()`) is needed as the program stands; that it comes before more launches is what
// keeps the host from working ahead.
//   · One instance per process; threads by their index. Amortized O(1) a call.
//   · Memory: one entry for each different sequence, at most kMostSequences; later ones are not looked at.
#pragma once

#include <unordered_map>
#include <vector>

#include "analysis/facts/source_lines.h"
#include "base/types.h"

namespace gputrace {

struct LaunchSequence {
  u64 launches = 0;                             // in one repetition
  u64 times = 0;                                // that it came, whole and between waits, without an allocation in it
  u64 call_ns = 0;                              // host time in its launch calls, all repetitions
  u32 first = 0xffffffffu, last = 0xffffffffu;  // indices in ProcessTrace::kernels
};
struct LaunchLoopFacts {
  std::vector<LaunchSequence> sequences;  // of at least kShortest launches, that came at least twice
  u64 waits = 0;                          // for a stream or context, of threads that had launched since their last one
  u64 needless_waits = 0;                 // of them: nothing needed them, and the thread's next work was a launch
  u64 result_waits = 0;                   // waits for a result of at most kResultBytes, with a launch after each
  OriginAmounts needless_by_origin, results_by_origin;  // what the host spent in them, ns
};

class LaunchLoops {
 public:
  static constexpr std::size_t kMostSequences = 4096;
  static constexpr u64 kShortest = 2;
  // What takes a link no longer than a copy takes to begin (64 KiB in 3 us at 20 GB/s): the host waits for the work, not for the bytes.
  static constexpr u64 kResultBytes = 64u << 10;

  explicit LaunchLoops(std::size_t threads) : threads_(threads) {}

  // A plain launch of that kernel (its shape with it) to that stream. True: the thread's newest wait was needless.
  bool launched(u32 thread, u32 kernel, u64 stream, u64 call_ns);
  // A replay of a graph; as launched().
  bool replayed(u32 thread);
  void recorded(u32 thread, u64 event) { recorded_[event] = {thread, threads_[thread].given}; }
  // Where the host spent how long.
  struct Spent {
    u32 origin = 0;  // number of a CallOrigin
    u64 nanos = 0;
  };
  // `event`: 0 where it is a stream or context.
  void waited(u32 thread, u64 event, Spent spent);
  // A synchronous copy to the host waits itself: a wait before it was not needed, and costs nothing.
  void copied_to_host(u32 thread, bool synchronous, u64 bytes, Spent spent);
  void copied_from_pinned() { ++copies_; }
  void freed(u32 thread) {
    threads_[thread].waiting = false;
    spoiled(thread);
  }
  // Managed memory, or a device's address of the host's: what the host reads is not seen.
  void host_sees_device_memory() { sees_device_memory_ = true; }
  // An allocation: what cannot be captured among its launches.
  void spoiled(u32 thread) { threads_[thread].spoiled = threads_[thread].launches != 0; }
  LaunchLoopFacts finish();

 private:
  struct Thread {
    u64 hash = 0, launches = 0, call_ns = 0;
    u64 given = 0;   // launches and replays
    u64 copies = 0;  // copies_ at its last wait
    u32 first = 0, last = 0;
    bool spoiled = false;
    bool launched = false;  // since its last wait
    bool waiting = false;   // it waited, nothing given before needed it, and it did nothing since
    bool result = false;    // a small result is on its way to it
    bool read = false;      // it waited for one, and launched nothing since
    Spent spent;            // in its last wait
  };
  struct Recorded {
    u32 thread = 0;
    u64 given = 0;
  };
  bool gave(Thread& thread);
  void end_sequence(Thread& thread);

  std::vector<Thread> threads_;
  std::unordered_map<u64, LaunchSequence> sequences_;
  std::unordered_map<u64, Recorded> recorded_;  // by event: what its thread had given by then
  u64 copies_ = 0;                              // whose end a thread may wait for
  bool sees_device_memory_ = false;
  LaunchLoopFacts facts_;
};

}  // namespace gputrace
