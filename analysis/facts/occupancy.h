// Theoretical occupancy: how many blocks of a kernel fit on one multiprocessor at once, and what of that follows for a
// grid. As cuOccupancyMaxActiveBlocksPerMultiprocessor answers; clusters are not looked at.
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

enum class OccupancyLimit { Warps, Blocks, Registers, SharedMemory };
const char* occupancy_limit_name(OccupancyLimit limit);  // "warps", "blocks", "registers", "shared memory"

struct Occupancy {
  u64 blocks_per_sm = 0;
  double ratio = 0;  // resident warps over the most that a multiprocessor holds
  // What allows the fewest blocks; of several the first of the enum: full occupancy is limited by warps.
  OccupancyLimit limit = OccupancyLimit::Warps;
};

// Nothing where a limit or a demand is not known or the kernel does not fit.
std::optional<Occupancy> theoretical_occupancy(const DeviceLimits& device, const KernelDemand& kernel);

struct Waves {
  double waves = 0;  // blocks of the grid over the blocks that the device holds at once
  double tail = 0;   // 0…1: share of the places that stay empty because the last wave is not full
};
// Nothing where the grid or the device is empty.
std::optional<Waves> waves_of(u64 grid_blocks, u64 blocks_per_sm, u64 sms);

}  // namespace gputrace
