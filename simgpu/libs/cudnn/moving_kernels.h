// The names of moving_kernels.def.
#pragma once

namespace simlibs {
#define GT_MOVING_KERNEL(constant, name, threads, body) inline constexpr const char* constant = #name;
#include "simgpu/libs/cudnn/moving_kernels.def"
}  // namespace simlibs
