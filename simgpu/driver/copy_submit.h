// The one way from a copy call to the timeline.
#pragma once

#include "simgpu/driver/call.h"
#include "simgpu/driver/operation.h"

namespace simgpu {

CUresult submit_copy(Call& call, CUstream stream, bool async, const CUDA_MEMCPY3D_PEER& description);

}  // namespace simgpu
