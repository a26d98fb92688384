// Adds one call to the table of host calls (ringbuf/host_table.h). Any thread, any signal handler: no lock, no allocation; raw system
// calls; errno is not touched.
#pragma once

#include "base/types.h"
#include "trace/record.h"

namespace gputrace::host {

// The table from now on; nullptr: none. `size` bytes, zeroed.
void set_table(char* table, u64 size);

// `path`: as HostPath counts, +1; 0: none.
// `frame`: StackFrame::id; 0: not known.
void add_file(u32 path, u32 frame, FileCall call, u64 bytes, Nanos length);
void add_wait(u32 frame, WaitFor what, Nanos length);

// The place of a path + 1. Once the table is nearly full it is that of its directory with "/*"; 0: no room at all.
u32 path_number(const char* path, u64 length);

}  // namespace gputrace::host
