// Source lines: the stacks from which calls were made, as a tree of frames, and what the calls of each stack came to.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace gputrace {

// A process numbers fewer stacks than this; what claims more is not believed.
inline constexpr u32 kMostStackFrames = 1u << 17;

// A frame under its caller's. Index 0 stands for calls whose stack is not known.
struct SourceFrame {
  std::string function, file;
  u32 parent = 0;  // index of the caller; 0: none is known
  u32 line = 0;    // 0: not known
};

// What the calls came to that were made from one stack, itself its innermost frame.
struct StackTotals {
  u64 calls = 0;     // driver calls that launch, copy, set, wait, allocate or free
  u64 launches = 0;  // plain and graph launches that succeeded, outside captures
  u64 wait_ns = 0;
  u64 copy_bytes = 0;
  u64 allocated_bytes = 0;
};

// The device's side: of the operations that were joined to those calls.
struct StackDeviceTimes {
  u64 device_ns = 0;  // their durations
  u64 idle_ns = 0;    // of the device, before those that ended an idle gap
};

struct SourceLines {
  std::vector<SourceFrame> frames;      // by the id of their StackFrame
  std::vector<StackTotals> totals;      // by the same number; may be shorter
  std::vector<StackDeviceTimes> times;  // likewise
};

// The entry `number` of one of them, made where it is not there yet.
template <typename Entry>
Entry& entry_at(std::vector<Entry>& entries, u32 number) {
  if (number >= entries.size()) entries.resize(number + 1u);
  return entries[number];
}

}  // namespace gputrace
