#include "simgpu/libs/cublas/product.h"

#include <algorithm>

namespace simlibs {
namespace {

bool is_operation(int op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C; }

bool is_valid(const Product& p) {
  const long long rows_a = p.op_a == CUBLAS_OP_N ? p.m : p.k, rows_b = p.op_b == CUBLAS_OP_N ? p.k : p.n;
  return is_operation(p.op_a) && is_operation(p.op_b) && p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0 &&
         p.lda >= std::max(1ll, rows_a) && p.ldb >= std::max(1ll, rows_b) && p.ldc >= std::max(1ll, p.m) && p.alpha &&
         p.beta;
}

bool is_fp8(int type) { return type == 28 || type == 29; }

// The manual's table of cublasGemmEx: what is multiplied must be of one type, but for the two of fp8.
bool is_supported(const Product& p) {
  if (p.type_a != p.type_b) return is_fp8(p.type_a) && is_fp8(p.type_b);
  switch (p.type_a) {
    case CUDA_R_8I:
      return p.type_c == CUDA_R_32I || p.type_c == CUDA_R_32F || p.type_c == CUDA_R_8I;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return p.type_c == p.type_a || p.type_c == CUDA_R_32F;
    case CUDA_C_8I:
      return p.type_c == CUDA_C_32F;
    default:
      return p.type_c == p.type_a || is_fp8(p.type_a);
  }
}

}  // namespace

cublasStatus_t multiply(cublasHandle_t handle, const Product& p) {
  if (!lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (!is_valid(p)) return CUBLAS_STATUS_INVALID_VALUE;
  Gemm gemm{p.op_a, p.op_b, p.m, p.n, p.k, p.a, p.b, const_cast<void*>(p.c), p.batch};
  if (!is_supported(p) || !math_of(p.type_a, p.compute, allows_tf32(handle), gemm.math))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return status_of(launch_gemm(gemm, stream_of(handle)));
}

cublasStatus_t multiply_groups(cublasHandle_t handle, const Product* products, long long groups) {
  if (!lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
  Gemm all;
  double largest = 0;
  all.batch = 0;
  for (long long i = 0; i < groups; ++i) {
    const Product& p = products[i];
    if (!is_valid(p)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_supported(p) || !math_of(p.type_a, p.compute, allows_tf32(handle), all.math))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    const double each = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    all.flops += each * static_cast<double>(p.batch);
    all.batch += p.batch;
    if (each < largest) continue;
    largest = each;
    all.op_a = p.op_a, all.op_b = p.op_b;
    all.m = p.m, all.n = p.n, all.k = p.k;
  }
  return status_of(launch_gemm(all, stream_of(handle)));
}

}  // namespace simlibs
