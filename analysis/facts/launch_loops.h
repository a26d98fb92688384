// Loops of launches as a thread makes them: the same launches again and again between two waits (a CUDA graph could
// replay them), and waits after which the thread only launches more.
//   · One instance per process; threads by their index. Amortized O(1) a call.
//   · Memory: one entry for each different sequence, at most kMostSequences; later ones are not looked at.
#pragma once

#include <unordered_map>
#include <vector>

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
  u64 waits_before_launches = 0;  // of them: the thread's next work was a launch, no copy to the host came between
};

class LaunchLoops {
 public:
  static constexpr std::size_t kMostSequences = 4096;
  static constexpr u64 kShortest = 2;

  explicit LaunchLoops(std::size_t threads) : threads_(threads) {}

  // A plain launch of that kernel (its shape with it) to that stream.
  void launched(u32 thread, u32 kernel, u64 stream, u64 call_ns);
  void waited(u32 thread);
  // A copy to the host: whatever wait came before it was needed. A synchronous one waits itself.
  void copied_to_host(u32 thread, bool synchronous);
  // An allocation, a free, a replay of a graph: what cannot be captured, or is captured already, among its launches.
  void spoiled(u32 thread) { threads_[thread].spoiled = threads_[thread].launches != 0; }
  LaunchLoopFacts finish();

 private:
  struct Thread {
    u64 hash = 0, launches = 0, call_ns = 0;
    u32 first = 0, last = 0;
    bool spoiled = false;
    bool launched = false;  // since its last wait
    bool waiting = false;   // it waited, and did nothing since
  };
  void end_sequence(Thread& thread);

  std::vector<Thread> threads_;
  std::unordered_map<u64, LaunchSequence> sequences_;
  LaunchLoopFacts facts_;
};

}  // namespace gputrace
