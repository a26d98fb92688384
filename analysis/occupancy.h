// Theoretical occupancy: resident warps of a kernel on one multiprocessor over the most that it holds.
// What limits: blocks, warps, registers, shared memory; clusters are not looked at.
#pragma once

#include <optional>

#include "base/types.h"

namespace gputrace {

struct DeviceLimits {
  u32 capability_major = 0;
  u32 max_threads_per_sm = 0;
  u32 max_blocks_per_sm = 0;
  u32 registers_per_sm = 0;
  u32 shared_bytes_per_sm = 0;
  u32 reserved_shared_bytes = 0;
  u32 warp_size = 0;
};

struct KernelDemand {
  u64 threads = 0;         // per block
  i32 registers = -1;      // per thread
  i32 static_shared = -1;  // bytes per block, without the system's reserve
  u64 dynamic_shared = 0;  // bytes per block
};

// 0…1, or nothing where a limit or a demand is not known or the kernel does not fit.
std::optional<double> theoretical_occupancy(const DeviceLimits& device, const KernelDemand& kernel);

}  // namespace gputrace
