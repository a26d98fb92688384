// One session per process: from its first CUDA call on, until it ends. A child of fork has a session of its own, from
// its own first call. Cold. The first failure switches off for good: the reason is in the segment if there is one, and
// every call passes through.
#pragma once

#include "base/types.h"
#include "ringbuf/producer.h"

namespace gputrace {

// The slow way into a traced call: the thread's generation is not the gate's. Starts the session if this is the
// process's first call, and makes the thread part of it. False: the call is not traced (off, being started by another
// thread).
bool enter_session();

void switch_off(int reason);

// A number that tells sessions of this process image apart; 0 before the first.
u64 session_generation();

// cuProfilerStart and cuProfilerStop under GPUTRACE_CAPTURE=profiler-api; nothing otherwise.
void set_profiler_range(bool begin, Ticks now);
// A range that rules the window begins or ends, whatever told it: from `now` on records are wanted, or are not. With a
// duration the window ends by itself.
void set_capture_range(bool begin, Ticks now);

// Keeps errno as the application knows it.
class ErrnoGuard {
 public:
  ErrnoGuard();
  ~ErrnoGuard();

 private:
  int saved_;
};

}  // namespace gputrace
