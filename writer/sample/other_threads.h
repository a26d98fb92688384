// Python threads of the traced process that call no CUDA and have worked lately: loaders, queues, servers. What the calling threads wait
// for may be theirs to make.
//   · Which there are, the interpreter lists. How much each has run is the kernel's count, read four times a second at most; those
//     kMostAtOnce that ran most since then (since they began, of those that were not there) have their turns.
//   · One that is of C's making (TensorFlow's calls of a Python function) is listed only while it is in Python, and the next call may be
//     another thread's: what was not listed at the look before has every second turn.
//   · A thread's number stands where glibc keeps it, which is proven by a thread whose number is known; else there are none.
//   · Of the newest kMostThreads.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "writer/sample/own_interpreter.h"
#include "writer/sample/process_memory.h"

namespace gputrace {

// Its number, by what stands as its pthread_self(): where this C library keeps it, which the caller proves. 0: it cannot be read.
i32 number_of_thread(ProcessMemory& process, u64 id);

class OtherThreads {
 public:
  static constexpr std::size_t kMostThreads = 256, kMostAtOnce = 4;

  // A calling thread, whose number is known.
  struct Calling {
    u64 state;
    i32 tid;
  };
  struct Turn {
    PythonThread python;
    i32 tid;
    Nanos& looked;  // when it had one last; good until the next call
  };

  // Whose turn it is; nothing: nobody's. `runtime`: the interpreter's _PyRuntime, proven to lead to its threads.
  std::optional<Turn> next(const OwnInterpreter& interpreter, ProcessMemory& process, u64 runtime,
                           const std::vector<Calling>& calling);

 private:
  struct Busy {
    i32 tid;
    u64 lately;  // ns that it ran
    Nanos looked;
  };
  void learn_numbers(const std::vector<PythonThread>& all, ProcessMemory& process, const std::vector<Calling>& calling);
  void find_busy(i32 process, const std::vector<Calling>& calling);

  // Those that were not there at the listing before.
  std::vector<PythonThread> arrivals(const std::vector<PythonThread>& all, const std::vector<Calling>& calling);
  // Of those that ran most lately and are listed.
  std::optional<Turn> next_busy(const std::vector<PythonThread>& all);

  std::unordered_map<u64, i32> numbers_;  // by pthread_self()
  std::unordered_map<i32, u64> ran_;      // ns by thread, as it was last time
  std::vector<Busy> busy_;
  std::size_t turn_ = 0;
  bool is_proven_ = false;
  Nanos next_count_ = 0;
  std::unordered_set<i32> listed_;  // numbers, at the look before
  Nanos expects_arrivals_until_ = 0, arrival_looked_ = 0;
  bool prefers_arrivals_ = false;
};

}  // namespace gputrace
