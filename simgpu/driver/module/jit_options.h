// The option arrays of loading and linking: nothing is compiled here, so what comes back is empty logs and no time.
#pragma once

#include "simgpu/driver/life/cuda_api.h"

namespace simgpu {

// CUDA_ERROR_INVALID_VALUE for missing arrays; outputs get their values.
CUresult answer_jit_options(unsigned count, const CUjit_option* options, void** values);

}  // namespace simgpu
