// What a Timeline makes, as a value: the device's side of ProcessTrace. pass/merge_timeline.h adds it to the host's side
// when both are done.
//   · Kernels, functions, copies and contexts stand in the order in which they came to be, those that the pass knows
//     and those that device records alone led to; `pass_number` is the pass's number of the former.
//   · Indices in it (KernelShape, LibraryUse) are places in these lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/step_facts.h"

namespace gputrace {

struct TimelineKernel {
  KernelShape shape;
  u32 pass_number = kNone;
  bool unjoined = false;  // as KernelLaunches has it
  KernelTimes times;
  u64 answered = 0, started = 0;  // as in KernelLaunches
};

struct TimelineFunction {
  std::string_view symbol;  // as far as it is known here; the text is the trace's
  u32 pass_number = kNone;
  i32 registers = -1, local_bytes = -1;  // as device records have them
  LaunchTimes waits;
};

struct TimelineContext {
  i32 device = -1;
  u32 pass_number = kNone;
};

// What tells groups of copies apart.
struct CopyKey {
  TransferKind kind = TransferKind::Unknown;
  HostMemory memory = HostMemory::Unknown;
  bool asynchronous = false;
  i32 device = -1;
  bool operator==(const CopyKey&) const = default;
};
struct TimelineCopies {
  CopyKey key;
  u32 pass_number = kNone;
  u64 count = 0, bytes = 0, device_ns = 0;
  u64 answered = 0, answered_bytes = 0, started = 0, started_bytes = 0;  // as in CopyGroup
};

// Of NVTX ranges of one name.
struct ProjectedRanges {
  u64 device_ns = 0, kernels = 0;
};

struct TimelineFacts {
  std::vector<TimelineKernel> kernels;
  std::vector<TimelineFunction> functions;
  std::vector<TimelineContext> contexts;
  std::vector<TimelineCopies> copies;
  std::vector<GraphTimes> graphs;            // by the pass's number; may be shorter than its list
  std::vector<StackDeviceTimes> stacks;      // by the number of the stack
  std::vector<KernelOrigin> kernel_origins;  // by the place in `kernels` and the number of the stack
  PausesBetween pauses;                      // by the numbers of the stacks
  LibraryFacts library;
  DeviceActivity activity;
  Activities activities;
  std::vector<ProjectedRanges> ranges;  // by the pass's number; may be shorter
};

}  // namespace gputrace
