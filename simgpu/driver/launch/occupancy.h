// How many blocks fit on a multiprocessor: registers, shared memory, threads and blocks, as the occupancy tables of the
// programming guide give them.
#pragma once

#include "simgpu/driver/life/state.h"

namespace simgpu {

// 0: not even one fits.
uint32_t blocks_per_multiprocessor_for(Function& function, uint32_t block_threads, size_t dynamic_shared);

}  // namespace simgpu
