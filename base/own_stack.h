// A stack of our own for what a session's start needs, which is more than a thread of the program may have left: the first
// call may come from a thread of 16 KiB, or from a handler on an alternate stack.
#pragma once

namespace gputrace {

inline constexpr long kOwnStack = 256 << 10;

// Calls function(data) on a fresh stack of `size` bytes, of which only what is used is ever there. Returns once it has
// returned. False: no memory, and it was not called. Any thread; errno may change.
bool call_on_own_stack(void (*function)(void* data), void* data, long size = kOwnStack);

}  // namespace gputrace
