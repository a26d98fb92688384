#pragma once

#include <cuda_runtime_api.h>

#include "simgpu/runtime/life/core.h"

// One implementation per call of streamed.def; the mode says which of the two exported names was called.
namespace simgpu::runtime::streamed {

#define GT_STREAMED(name, suffix, arguments, ...) cudaError_t name(Mode mode, __VA_ARGS__);
#include "simgpu/runtime/life/streamed.def"
#undef GT_STREAMED

}  // namespace simgpu::runtime::streamed
