// Values in memory that streams write and wait for.
#pragma once

#include "simgpu/driver/life/cuda_api.h"

namespace simgpu {

// CUDA_SUCCESS, or what is wrong with the operation.
CUresult check_memory_op(const CUstreamBatchMemOpParams& op);
bool waits(const CUstreamBatchMemOpParams& op);
bool value_has_come(const CUstreamBatchMemOpParams& op);  // of an operation that waits
void write_value(const CUstreamBatchMemOpParams& op);     // of one that writes; nothing for barriers

}  // namespace simgpu
