// A product as any of cuBLAS's gemm functions says it: checked as the manual says, then launched.
#pragma once

#include "simgpu/libs/cublas/handle.h"
#include "simgpu/libs/gemm/gemm_choice.h"

namespace simlibs {

struct Product {
  cublasOperation_t op_a, op_b;
  long long m, n, k;
  const void *alpha, *a;
  int type_a;  // cudaDataType
  long long lda;
  const void* b;
  int type_b;
  long long ldb;
  const void *beta, *c;
  int type_c;
  long long ldc;
  int compute = -1;  // cublasComputeType_t; -1: that of the types
  long long batch = 1;
};

cublasStatus_t multiply(cublasHandle_t handle, const Product& product);
// Groups of products, `groups` with a `batch` each, by one kernel that has the tiles of the largest.
cublasStatus_t multiply_groups(cublasHandle_t handle, const Product* products, long long groups);

template <typename T>
inline constexpr int kTypeOf = -1;
template <>
inline constexpr int kTypeOf<float> = CUDA_R_32F;
template <>
inline constexpr int kTypeOf<double> = CUDA_R_64F;
template <>
inline constexpr int kTypeOf<cuComplex> = CUDA_C_32F;
template <>
inline constexpr int kTypeOf<cuDoubleComplex> = CUDA_C_64F;
template <>
inline constexpr int kTypeOf<__half> = CUDA_R_16F;

}  // namespace simlibs
