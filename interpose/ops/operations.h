// Operations of frameworks: what PyTorch says of itself when it runs (at::RecordFunction, which its headers offer for observers
// of whole fleets). Each operation gives a record when it ends; what is under way is part of the stack of the calls that it
// makes. Operations are frames of a tree of their own (StackFrame, language Operation).
#pragma once

#include "base/types.h"
#include "interpose/ops/forward_lines.h"
#include "interpose/settings/info_text.h"

namespace gputrace {

// A new session, or a child of fork. Looks for PyTorch among the loaded objects, and says in `info` why there will be no
// operations, where that is so.
void reset_operations(bool wanted, InfoText& info);
// Whether there is a PyTorch that can be followed.
bool operations_are_followed();
// The session has begun, its gate is open: asks PyTorch to call us from now on, once a process. Takes a lock of PyTorch's for a
// moment; not from a signal handler. `line_now` is asked for the StackFrame of the calling thread's line; 0: not known.
using LineNow = u32 (*)();
void begin_operations(u64 generation, LineNow line_now);

// What the calling thread is in.
struct OperationsUnderWay {
  u32 frame = 0;             // StackFrame of the innermost operation; 0: none, or not known
  u64 backward = kNoNumber;  // number of the forward operation whose backward one is under way
  Ticks instance = 0;  // when the innermost one began, where it lies on the thread's stack: no Python code runs between
                       // two calls from the same place in it but what it calls itself; 0: not known
};
OperationsUnderWay operations_under_way();
// The thread makes a call from that line: it is that of the innermost forward operation that has a number, of those within the backward one
// (a checkpointed module runs forward again there).
void calls_from(u32 frame);

}  // namespace gputrace
