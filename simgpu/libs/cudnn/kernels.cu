// cuDNN's kernels: those of kernels.def multiply, the others move.
#include "simgpu/libs/kernels/maths.cuh"

#define GT_CONV_KERNEL(name, generation, direction, math, m, n, threads, shared) \
  GT_MULTIPLYING_KERNEL(name, generation, math, m, n, threads)
#include "simgpu/libs/cudnn/kernels.def"

#define GT_MOVING_KERNEL(constant, name, threads, body) SIMLIBS_KERNEL(name, threads, simlibs::body<float>(p))
#include "simgpu/libs/cudnn/moving_kernels.def"
