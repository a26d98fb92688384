// One session per process: from its first CUDA call on, until it ends. A child of fork has a session of its own, from
// its own first call. Cold. What fails here fails before the session has begun: then there is none, for good, and every
// call passes through. From then on nothing fails: what finds no room is dropped and counted.
#pragma once

#include "base/types.h"

namespace gputrace {

// The slow way into a traced call: the thread's generation is not the gate's. Starts the session if this is the
// process's first call, and makes the thread part of it. False: the call is not traced (off, being started by another
// thread).
__attribute__((cold)) bool enter_session();

// Whether this process, or the one that it was forked from, has put itself under a filter of system calls
// (session/sandbox.cpp): no more of them from us then.
bool is_sandboxed();

// What moves the session's window (session/window.h).
// cuProfilerStart and cuProfilerStop under GPUTRACE_CAPTURE=profiler-api; nothing otherwise.
void set_profiler_range(bool begin, Ticks now);
// A step of the program's loop has ended, under GPUTRACE_CAPTURE=steps:A-B; nothing otherwise.
void step_ended(Ticks now);
// Steps will not be told of: what was waited for is recorded from here on.
void steps_are_unknown(Ticks now);
// A range that rules the window begins or ends, whoever reported it: from `now` on records are wanted, or are not. With a
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
