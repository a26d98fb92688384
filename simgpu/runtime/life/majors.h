// One source for two majors of the runtime. What CUDA 13 calls by a plain name, and 12 by a versioned one, beside an older call that
// cuda12.cpp has:   extern "C" cudaError_t GT_NAME(cudaGraphGetEdges, cudaGraphGetEdges_v2)(…)
#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000
#define GT_NAME(in_13, in_12) in_13
#else
#define GT_NAME(in_13, in_12) in_12
#endif
