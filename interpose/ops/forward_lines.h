// From which line the forward operation of a number of autograd's was called: the line of the backward operation that has the
// same number. Of the last 32,768 numbers. Any thread; no lock.
#pragma once

#include "base/types.h"

namespace gputrace {

// A number of autograd's, with that of the thread above these bits.
inline constexpr unsigned kSequenceBits = 40;
inline constexpr u64 kNoNumber = ~0ull;  // autograd's own, too

// A session begins, or ends. False: no memory; then no line is remembered.
bool open_forward_lines();
void close_forward_lines();

// `frame`: a StackFrame; 0: nobody knows, whatever was remembered.
void remember_forward(u64 number, u32 frame);
// 0: not known.
u32 forward_frame(u64 number);

}  // namespace gputrace
