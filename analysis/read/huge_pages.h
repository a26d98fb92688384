// Huge pages for the heap of a program that reads a large trace. A report of ten million records touches half a gigabyte for the first
// time: in pages of 4 KiB that are 100,000 faults, a sixth of its processor time (docs/decisions/0162).
#pragma once

#include "base/types.h"

namespace gputrace {

// Traces of so many bytes are going to be read: from kFewBytes on the next gigabyte of the heap is asked for in huge pages, once in a
// program. Below that each array's rounding up to 2 MiB would be more than what it saves. Nothing where the kernel gives none, where
// address space is limited (ulimit -v, -d), or with another malloc than glibc's. Any thread.
inline constexpr u64 kFewBytes = 8u << 20;
void ask_for_huge_pages(u64 trace_bytes);

}  // namespace gputrace
