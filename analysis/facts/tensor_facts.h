// Memory that a framework's own allocator gives out of what it has from the driver: tensors, by what they are for.
#pragma once

#include <array>
#include <vector>

#include "analysis/facts/memory_span.h"
#include "base/types.h"

namespace gputrace {

// What a piece is for, told from where in a training step it came and how long it lived (memory/tensor_memory.h). In the order
// in which reports show them.
enum class TensorKind : u8 {
  Parameters,
  Gradients,
  OptimizerState,
  Activations,
  Inputs,
  Workspace,
  Persistent,
  Unknown
};
inline constexpr std::array<const char*, 8> kTensorKinds = {"parameters", "gradients", "optimizer state", "activations",
                                                            "inputs",     "workspace", "persistent",      "not known"};

// What was live at the peak, of one kind and origin.
struct TensorPart {
  TensorKind kind = TensorKind::Unknown;
  u32 origin = 0;  // in SourceLines::origins
  u64 bytes = 0, count = 0;
  Nanos oldest = 0, newest = 0;  // when the first and the last of them were allocated
};
struct TensorSample {
  Nanos at = 0;
  u64 allocated = 0, reserved = 0;
};

// A framework's allocator on one device.
struct FrameworkMemory {
  i32 device = -1;
  u64 allocations = 0, frees = 0;
  u64 allocated = 0, reserved = 0;  // the newest
  u64 peak_bytes = 0;               // largest `allocated`, and what was reserved then
  u64 peak_reserved_bytes = 0;
  Nanos peak_at = 0;
  u64 driver_bytes_at_peak = 0;  // all that the process held of the device then, its reserved memory included
  std::vector<TensorPart> at_peak;
  MemorySpans spans;
  std::vector<TensorSample>
      samples;  // after each change; thinned to the largest of an interval once there are too many
  bool thinned = false;
  u64 refused = 0, refused_bytes = 0;  // out of memory: how often, and the largest wish
  u32 refused_origin = 0;              // of that one
};

}  // namespace gputrace
