// The CUDA 13 driver API with every exported version under its own name: cuMemAlloc and cuMemAlloc_v2 are two functions
// here, and no macro renames one into the other. The driver includes cuda.h only through this header.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
