// The one way from a copy call to the timeline.
#pragma once

#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/call.h"

namespace simgpu {

CUresult submit_copy(Call& call, CUstream stream, bool async, const CUDA_MEMCPY3D_PEER& description);

}  // namespace simgpu
