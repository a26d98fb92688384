// The Python lines from which a thread calls CUDA: before a call that shows its stack (hot/stack_calls.h) the thread's own
// frames are read, as they lie in memory, and a Stack record is written when they differ from the last ones. No GIL is taken,
// nothing of the interpreter is held, set or counted. The frames stand still meanwhile: this thread is the one that runs
// them, and it is inside a call.
#pragma once

#include "base/types.h"
#include "interpose/settings/info_text.h"

namespace gputrace {

// A new session, or a child of fork: nothing is known. Looks for the interpreter and says in `info` why there will be no
// lines, where that is so.
void reset_python_stacks(bool wanted, InfoText& info);
// The session has begun, its gate is open. Returns whether stacks are read from now on: then launches take the way through
// traced.h.
bool begin_python_stacks(u64 generation);

}  // namespace gputrace
