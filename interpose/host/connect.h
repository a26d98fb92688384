// Between libgputrace.so and libgputrace-host.so, which stands before libc's file calls and waits where `io` or `waits` are collected.
// libgputrace.so exports none of those names itself: a program that did not ask for them runs without a wrapper in their way.
//   · libgputrace.so finds gputrace_host_connect() among the loaded objects when its session begins, and gives it the table.
//   · A process forked from it goes on adding to its parent's table until it has a session of its own.
#pragma once

#include "base/types.h"

namespace gputrace {

struct HostConnection {
  char* table = nullptr;  // ringbuf/host_table.h; stays mapped
  u64 table_size = 0;
  u64 interpreter_begin = 0, interpreter_end = 0;  // the object that CPython lies in; 0: there is none
  bool (*wanted)() = nullptr;  // whether what happens now is to be recorded, and system calls of ours may be made
  u32 (*frame)() = nullptr;    // number of the innermost frame of the calling thread; 0: not known
  bool files = false, waits = false;
};

}  // namespace gputrace

// Copies `connection`. Once a session, by the thread that begins it.
extern "C" void gputrace_host_connect(const gputrace::HostConnection* connection);
