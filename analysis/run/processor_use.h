// What threads used of the processors, as the kernel told it of them now and then.
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/facts/facts.h"

namespace gputrace {

// Between the looks nearest to the begin and the end of what the devices did, of which gains are shares: a thread's start-up, in which it
// imports and loads while the device has nothing yet, is another matter. Of its whole life where it was looked at too seldom.
struct ProcessorUse {
  Nanos length = 0;
  u64 cpu_ns = 0, ready_ns = 0;  // running; it could have run and had no processor
  double share() const {
    return length > 0 ? std::min(1.0, static_cast<double>(ready_ns) / static_cast<double>(length)) : 0;
  }
};
ProcessorUse used_meanwhile(const ProcessTrace& process, const HostThread& thread);

// The process's threads that call CUDA.
std::set<i32> callers_of(const ProcessTrace& process);

// What those spent on a processor together, or could have, in so many ns of the time in which devices worked, one after the other; nothing: one of them
// was not looked at for half of that.
std::optional<u64> callers_ran(const ProcessTrace& process, u64 length);

// What the others of the process's threads used meanwhile, and the processes that come from it in their lives: all that may work for thread
// `tid`, but for what traces. ns; nothing: nobody looked at that thread.
struct OthersUse {
  u64 callers_ns = 0;  // of threads that call CUDA as well: work of their own, as in a pool, or for that thread
  u64 others_ns = 0;
};
std::optional<OthersUse> cpu_of_others(const ProcessTrace& process, i32 tid);

// What threads of the process used that no look saw, since they live for less than the time between two: of the whole run's, as much as devices
// had of that thread's life. 0 where that is not known.
u64 cpu_of_unseen(const ProcessTrace& process, i32 tid);

}  // namespace gputrace
