// Which kernel multiplies, and in which shape: a rule of ours over gemm_kernels.def, deterministic, in the manner of the library's
// heuristics (large tiles where there are enough of them to fill the device).
#pragma once

#include "simgpu/libs/common/arithmetic.h"

namespace simlibs {

struct Gemm {
  int op_a = 0, op_b = 0;  // cublasOperation_t
  long long m = 0, n = 0, k = 0;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  long long batch = 1;
  Math math = Math::F32;
  int algorithm = 0;  // 0: the best; n: the n-th best
  double flops = 0;   // of products of several sizes in one kernel; 0: follows from the sizes
};

// The arithmetic of inputs of that cudaDataType under a cublasComputeType_t; false: there is none. `tf32` is what the handle allows.
bool math_of(int type, int compute, bool tf32, Math& math);

// How many kernels could do it on the current device.
int kernels_for(Math math);

// Launches it: one kernel, and one more where a deep product of few tiles is split along k. Nothing for an empty product.
CUresult launch_gemm(const Gemm& gemm, CUstream stream);

}  // namespace simlibs
