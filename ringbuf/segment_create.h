// Making the segment, in the traced process: a sealed, reserved, pre-faulted memfd, mapped, with its header and texts
// in place. Cold, once per process. No allocation, no exception; every failure is an errno and leaves nothing behind.
#pragma once

#include "base/clock.h"
#include "base/types.h"
#include "ringbuf/segment.h"

namespace gputrace {

struct SegmentRequest {
  Bytes budget = 0;  // of the whole segment; at least kMinSegment
  ClockKind clock = ClockKind::Monotonic;
  OnFull on_full = OnFull::Drop;
  const char* schema = "";
  Bytes schema_size = 0;
  const char* info = "";
  Bytes info_size = 0;
  u64 random_id = 0;
  u64 pid_namespace = 0;
  u64 start_time = 0;
  i32 pid = 0;
  Bytes host_table = 0;  // of the budget: for the table of host calls (host_table_size()); 0: none
  int file =
      -1;  // a file of segment_size(budget) bytes that the segment is to lie in; -1: memory of its own. The caller's
};
inline constexpr Bytes kMinSegment = 512u << 10;

// Bytes that a segment of that budget takes.
u64 segment_size(Bytes budget);
// What a table of host calls takes of a budget.
Bytes host_table_size(Bytes budget);
// Gives an empty file that size, every block of it reserved. Returns 0 or an errno.
int reserve_file(int fd, u64 size);

struct CreatedSegment {
  int fd = -1;  // close-on-exec, as high as the descriptor limit reasonably allows; the caller's to close
  char* base = nullptr;
  SegmentHeader* header = nullptr;
};

// Returns 0 or an errno.
int create_segment(const SegmentRequest& request, CreatedSegment& created);

// Fills in the layout for a budget: sizes, counts and offsets. False if it is too small. Pure.
bool plan_segment(const SegmentRequest& request, SegmentHeader& header);

// Writes what a planned segment begins with into zeroed memory of header.segment_size bytes: header, texts, empty slots, an
// open window.
void begin_segment(char* base, const SegmentHeader& header, const SegmentRequest& request);

// Moves a descriptor out of the numbers that the application expects; returns the new one (or the old one when there is
// no room).
int move_descriptor_high(int fd);

}  // namespace gputrace
