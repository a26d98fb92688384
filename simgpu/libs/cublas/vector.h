// cuBLAS's functions on vectors and triangles: each launches a kernel of vector_kernels.def.
#pragma once

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cublas/handle.h"

namespace simlibs {

enum class VectorKernel {
#define GT_VECTOR_KERNEL(name, symbol, body, threads) name,
#include "simgpu/libs/cublas/vector_kernels.def"
};

// By the type: float, double, and the complex of each.
template <typename T>
inline constexpr int kVectorType = 0;
template <>
inline constexpr int kVectorType<double> = 1;
template <>
inline constexpr int kVectorType<cuComplex> = 2;
template <>
inline constexpr int kVectorType<cuDoubleComplex> = 3;
inline int vector_type(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 1;
    case CUDA_C_32F:
      return 2;
    case CUDA_C_64F:
      return 3;
    default:
      return 0;
  }
}

// Over n elements, in `layers` of a batch.
cublasStatus_t launch_vector(cublasHandle_t handle, VectorKernel kernel, int type, long long n, long long layers = 1);
// A reduction: the kernel, a second one over its blocks, and with pointers of the host the wait for a result, which is all zeros.
cublasStatus_t reduce_vector(cublasHandle_t handle, VectorKernel kernel, int type, long long n, void* result,
                             size_t result_bytes);

}  // namespace simlibs
