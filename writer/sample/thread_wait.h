// What a thread sleeps for, seen from outside: the kernel tells which of its calls a thread stands in, with the arguments
// (/proc/PID/task/TID/syscall, since Linux 2.6.27). Whom it lets read a process's memory it lets read that. The thread is not touched.
#pragma once

#include <optional>

#include "trace/record.h"

namespace gputrace {

// Where CPython keeps its lock: a thread that sleeps for something there sleeps for that. 0 bytes: not known.
struct InterpreterMemory {
  u64 address = 0, bytes = 0;
};

struct ThreadWait {
  std::optional<WaitFor> what;  // nothing: it ran, or could have
};
// Nothing: the kernel does not say, or there is no such thread.
std::optional<ThreadWait> wait_of_thread(i32 process, i32 tid, const InterpreterMemory& interpreter);

}  // namespace gputrace
