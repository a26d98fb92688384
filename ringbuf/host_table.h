// The table of host calls: how often, how long and how much the program's processes read and wrote files, and how long their threads
// waited, summed by path and by line. It lies in the segment (SegmentHeader::host_table_offset), where it was asked for, so that
// processes forked from the traced one, which have no ring, add to it as well, and it outlives them all.
//
//   HostTableHead | HostPath[paths] | FileSum[files] | WaitSum[waits] | text of the paths
//
//   · An entry is taken by one compare-and-swap of its key and never given back; its sums only grow. Nobody ever waits.
//   · Several words of an entry are not changed together, `count` last: a call may be in `total` and not yet in `count`.
//   · What finds no room is counted in the head.
//   · Whoever reads it assumes that the program is broken or hostile: the layout follows from its size alone.
#pragma once

#include <atomic>

#include "base/types.h"

namespace gputrace {

struct alignas(64) HostTableHead {
  std::atomic<u64> text_used;  // bytes
  std::atomic<u64> paths_used, files_used;
  std::atomic<u64> lost_files, lost_waits;  // calls that found no room
};

struct HostPath {
  std::atomic<u64> hash;    // text_id() of its text; 0: free
  std::atomic<u32> offset;  // in the text
  std::atomic<u32> length;  // 0: the text is not there yet, or never
};

// `key`: process (as it sees itself; 22 bits, as many as Linux gives) << 42 | path (12) << 30 | FileCall (4) << 26 | number of the frame
// (StackFrame::id; 26), 0: not known; 0: free. `path`: its place among the paths + 1; 0: none is known (no such descriptor), or there was
// no room for it.
struct FileSum {
  std::atomic<u64> key;
  std::atomic<u64> count, bytes, total, longest;  // ns
};
inline constexpr u32 kMostFileFrame = (1u << 26) - 1;
inline constexpr u64 file_key(u32 process, u32 path, u32 call, u32 frame) {
  return u64{process} << 42 | u64{path} << 30 | u64{call} << 26 | (frame <= kMostFileFrame ? frame : 0);
}
struct FileKey {
  u32 process, path, call, frame;
};
inline constexpr FileKey parts_of_file_key(u64 key) {
  return {static_cast<u32>(key >> 42), static_cast<u32>(key >> 30 & 0xfff), static_cast<u32>(key >> 26 & 0xf),
          static_cast<u32>(key & kMostFileFrame)};
}

// `key`: thread (24 bits) << 40 | number of the frame (StackFrame::id), 0: not known (32 bits) << 8 | WaitFor; 0: free.
struct WaitSum {
  std::atomic<u64> key;
  std::atomic<u32> process;  // the thread's, as it sees itself; 0: not there yet
  u32 reserved;
  std::atomic<u64> count, total, longest;  // ns
};
inline constexpr u64 wait_key(u32 tid, u32 frame, u32 what) { return u64{tid} << 40 | u64{frame} << 8 | what; }

struct HostTableLayout {
  u32 paths = 0, files = 0, waits = 0;
  u64 paths_at = 0, files_at = 0, waits_at = 0, text_at = 0, text_size = 0;
};

inline constexpr u64 kLeastHostTable = 64u << 10, kMostHostTable = 1u << 20;

inline constexpr HostTableLayout host_table_layout(u64 size) {
  HostTableLayout plan;
  plan.paths = plan.waits = static_cast<u32>(size / 512);
  plan.files = static_cast<u32>(size / 128);  // a file is opened, read, …, by several processes
  plan.paths_at = sizeof(HostTableHead);
  plan.files_at = plan.paths_at + u64{plan.paths} * sizeof(HostPath);
  plan.waits_at = plan.files_at + u64{plan.files} * sizeof(FileSum);
  plan.text_at = plan.waits_at + u64{plan.waits} * sizeof(WaitSum);
  plan.text_size = size - plan.text_at;
  return plan;
}
static_assert(host_table_layout(kLeastHostTable).text_at < kLeastHostTable);
static_assert(host_table_layout(kMostHostTable).paths < 1u << 12);  // FileSum::key

}  // namespace gputrace
