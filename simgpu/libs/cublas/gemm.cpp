// cuBLAS's functions that multiply matrices: each with its types, then one product (product.h).
#include "simgpu/libs/cublas/product.h"
#include "simgpu/libs/cublas/widths.h"

using simlibs::kTypeOf;
using simlibs::multiply;

#define GT_GEMM(name, I, T)                                                                                           \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const T* alpha, const T* a, I lda, const T* b, I ldb, const T* beta, T* c, I ldc) {   \
    return multiply(handle,                                                                                           \
                    {op_a, op_b, m, n, k, alpha, a, kTypeOf<T>, lda, b, kTypeOf<T>, ldb, beta, c, kTypeOf<T>, ldc});  \
  }
#define GT_GEMM_TYPED(name, I, T)                                                                                     \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const T* alpha, const void* a, cudaDataType type_a, I lda, const void* b,             \
                                cudaDataType type_b, I ldb, const T* beta, void* c, cudaDataType type_c, I ldc) {     \
    return multiply(handle, {op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc});      \
  }
#define GT_GEMM_EX(name, I)                                                                                           \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const void* alpha, const void* a, cudaDataType type_a, I lda, const void* b,          \
                                cudaDataType type_b, I ldb, const void* beta, void* c, cudaDataType type_c, I ldc,    \
                                cublasComputeType_t compute, cublasGemmAlgo_t) {                                      \
    return multiply(handle,                                                                                           \
                    {op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute});     \
  }
#define GT_GEMM_BATCHED(name, I, T)                                                                                   \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const T* alpha, const T* const* a, I lda, const T* const* b, I ldb, const T* beta,    \
                                T* const* c, I ldc, I batch) {                                                        \
    return multiply(handle, {op_a, op_b, m, n, k, alpha, a, kTypeOf<T>, lda, b, kTypeOf<T>, ldb, beta, c, kTypeOf<T>, \
                             ldc, -1, batch});                                                                        \
  }
#define GT_GEMM_STRIDED(name, I, T)                                                                                   \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const T* alpha, const T* a, I lda, long long, const T* b, I ldb, long long,           \
                                const T* beta, T* c, I ldc, long long, I batch) {                                     \
    return multiply(handle, {op_a, op_b, m, n, k, alpha, a, kTypeOf<T>, lda, b, kTypeOf<T>, ldb, beta, c, kTypeOf<T>, \
                             ldc, -1, batch});                                                                        \
  }
#define GT_GEMM_BATCHED_EX(name, I)                                                                                   \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const void* alpha, const void* const* a, cudaDataType type_a, I lda,                  \
                                const void* const* b, cudaDataType type_b, I ldb, const void* beta, void* const* c,   \
                                cudaDataType type_c, I ldc, I batch, cublasComputeType_t compute, cublasGemmAlgo_t) { \
    return multiply(                                                                                                  \
        handle, {op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute, batch});  \
  }
#define GT_GEMM_STRIDED_EX(name, I)                                                                                   \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, I m, I n, I k, \
                                const void* alpha, const void* a, cudaDataType type_a, I lda, long long,              \
                                const void* b, cudaDataType type_b, I ldb, long long, const void* beta, void* c,      \
                                cudaDataType type_c, I ldc, long long, I batch, cublasComputeType_t compute,          \
                                cublasGemmAlgo_t) {                                                                   \
    return multiply(                                                                                                  \
        handle, {op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute, batch});  \
  }

GT_WIDTHS(GT_GEMM, cublasSgemm_v2, float)
GT_WIDTHS(GT_GEMM, cublasDgemm_v2, double)
GT_WIDTHS(GT_GEMM, cublasCgemm_v2, cuComplex)
GT_WIDTHS(GT_GEMM, cublasZgemm_v2, cuDoubleComplex)
GT_WIDTHS(GT_GEMM, cublasCgemm3m, cuComplex)
GT_WIDTHS(GT_GEMM, cublasZgemm3m, cuDoubleComplex)
GT_WIDTHS(GT_GEMM, cublasHgemm, __half)
GT_WIDTHS(GT_GEMM_TYPED, cublasSgemmEx, float)
GT_WIDTHS(GT_GEMM_TYPED, cublasCgemmEx, cuComplex)
GT_WIDTHS(GT_GEMM_TYPED, cublasCgemm3mEx, cuComplex)
GT_WIDTHS(GT_GEMM_EX, cublasGemmEx)
GT_WIDTHS(GT_GEMM_BATCHED, cublasHgemmBatched, __half)
GT_WIDTHS(GT_GEMM_BATCHED, cublasSgemmBatched, float)
GT_WIDTHS(GT_GEMM_BATCHED, cublasDgemmBatched, double)
GT_WIDTHS(GT_GEMM_BATCHED, cublasCgemmBatched, cuComplex)
GT_WIDTHS(GT_GEMM_BATCHED, cublasCgemm3mBatched, cuComplex)
GT_WIDTHS(GT_GEMM_BATCHED, cublasZgemmBatched, cuDoubleComplex)
GT_WIDTHS(GT_GEMM_STRIDED, cublasHgemmStridedBatched, __half)
GT_WIDTHS(GT_GEMM_STRIDED, cublasSgemmStridedBatched, float)
GT_WIDTHS(GT_GEMM_STRIDED, cublasDgemmStridedBatched, double)
GT_WIDTHS(GT_GEMM_STRIDED, cublasCgemmStridedBatched, cuComplex)
GT_WIDTHS(GT_GEMM_STRIDED, cublasCgemm3mStridedBatched, cuComplex)
GT_WIDTHS(GT_GEMM_STRIDED, cublasZgemmStridedBatched, cuDoubleComplex)
GT_WIDTHS(GT_GEMM_BATCHED_EX, cublasGemmBatchedEx)
GT_WIDTHS(GT_GEMM_STRIDED_EX, cublasGemmStridedBatchedEx)
