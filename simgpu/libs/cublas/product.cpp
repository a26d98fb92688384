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
  if (!is_valid(p)) return CUBLAS_STATUS_INVALID_VALUE;
  Gemm gemm{p.op_a, p.op_b, p.m, p.n, p.k, p.a, p.b, const_cast<void*>(p.c), p.batch};
  if (!is_supported(p) || !math_of(p.type_a, p.compute, allows_tf32(handle), gemm.math))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return status_of(launch_gemm(gemm, stream_of(handle)));
}

}  // namespace simlibs
