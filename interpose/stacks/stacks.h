// The lines from which a thread calls CUDA: before a call that shows its stack (hot/stack_calls.h) the thread's own frames
// are read, as they lie in memory, and a Stack record is written when they differ from the last ones.
//   · Python's: no GIL is taken, nothing of the interpreter is held, set or counted. The frames stand still meanwhile: this
//     thread is the one that runs them, and it is inside a call.
//   · Native ones, where they are asked for: of a thread that runs Python those within its innermost Python frame, of any
//     other all.
#pragma once

#include "base/types.h"
#include "interpose/settings/info_text.h"

namespace gputrace {

// A new session, or a child of fork: nothing is known. Looks for the interpreter and for libunwind, and says in `info` why
// there will be no lines, where that is so.
struct WantedStacks {
  bool python = false, native = false;
};
void reset_stacks(WantedStacks wanted, InfoText& info);
// The session has begun, its gate is open. Returns whether stacks are read from now on: then launches take the way through
// traced.h.
bool begin_stacks(u64 generation);

// The number of the frame of Python that the calling thread is in; 0: not known. Of threads that have made a CUDA call; no call of the
// thread's is told by it.
u32 innermost_frame();
// The same; where no Python frame is around a backward pass, the line of the forward operation. A LineNow (ops/operations.h).
u32 line_now();
// The object that the interpreter lies in; zeros: there is none that is read.
struct AddressRange {
  u64 begin = 0, end = 0;
};
AddressRange interpreter_object();

}  // namespace gputrace
