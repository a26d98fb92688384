// cuBLAS's functions of a matrix and vectors, and those of symmetric and triangular matrices.
#include "simgpu/libs/cublas/product.h"
#include "simgpu/libs/cublas/vector.h"
#include "simgpu/libs/cublas/widths.h"

using simlibs::kTypeOf;
using simlibs::kVectorType;
using simlibs::launch_vector;
using simlibs::least_ld;
using simlibs::multiply;
using Kernel = simlibs::VectorKernel;

namespace {

cublasStatus_t times_vector(cublasHandle_t handle, cublasOperation_t op, int type, long long m, long long n,
                            long long lda, long long inc_x, long long inc_y, bool scalars, long long layers = 1) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (op < 0 || op > CUBLAS_OP_C || m < 0 || n < 0 || lda < least_ld(m) || !inc_x || !inc_y || !scalars || layers < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return launch_vector(handle, op == CUBLAS_OP_N ? Kernel::Gemv : Kernel::GemvT, type, (op == CUBLAS_OP_N ? m : n) * 32,
                       layers);
}

cublasStatus_t solve(cublasHandle_t handle, Kernel kernel, int type, cublasSideMode_t side, cublasFillMode_t fill,
                     long long m, long long n, long long lda, long long ldb, bool scalars, long long layers = 1) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if ((side != CUBLAS_SIDE_LEFT && side != CUBLAS_SIDE_RIGHT) || fill < 0 || fill > CUBLAS_FILL_MODE_FULL || m < 0 ||
      n < 0 || lda < least_ld(side == CUBLAS_SIDE_LEFT ? m : n) || ldb < least_ld(m) || !scalars)
    return CUBLAS_STATUS_INVALID_VALUE;
  return launch_vector(handle, kernel, type, m * n, layers);
}

}  // namespace

#define GT_GEMV(name, I, T)                                                                                      \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op, I m, I n, const T* alpha, const T*, \
                                I lda, const T*, I inc_x, const T* beta, T*, I inc_y) {                          \
    return times_vector(handle, op, kVectorType<T>, m, n, lda, inc_x, inc_y, alpha && beta);                     \
  }
#define GT_GEMV_BATCHED(name, I, T)                                                                            \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op, I m, I n, const T* alpha,         \
                                const T* const[], I lda, const T* const[], I inc_x, const T* beta, T* const[], \
                                I inc_y, I batch) {                                                            \
    return times_vector(handle, op, kVectorType<T>, m, n, lda, inc_x, inc_y, alpha && beta, batch);            \
  }
#define GT_GEMV_STRIDED(name, I, T)                                                                                    \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op, I m, I n, const T* alpha, const T*,       \
                                I lda, long long, const T*, I inc_x, long long, const T* beta, T*, I inc_y, long long, \
                                I batch) {                                                                             \
    return times_vector(handle, op, kVectorType<T>, m, n, lda, inc_x, inc_y, alpha && beta, batch);                    \
  }
GT_TYPES(GT_GEMV, gemv, _v2)
GT_TYPES(GT_GEMV_BATCHED, gemvBatched, )
GT_TYPES(GT_GEMV_STRIDED, gemvStridedBatched, )

#define GT_GER(name, I, T)                                                                                             \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I m, I n, const T* alpha, const T*, I inc_x, const T*, I inc_y, \
                                T*, I lda) {                                                                           \
    if (m < 0 || n < 0 || !inc_x || !inc_y || lda < least_ld(m) || !alpha) return CUBLAS_STATUS_INVALID_VALUE;         \
    return launch_vector(handle, Kernel::Ger, kVectorType<T>, static_cast<long long>(m) * n);                          \
  }
GT_WIDTHS(GT_GER, cublasSger_v2, float)
GT_WIDTHS(GT_GER, cublasDger_v2, double)
GT_WIDTHS(GT_GER, cublasCgeru_v2, cuComplex)
GT_WIDTHS(GT_GER, cublasCgerc_v2, cuComplex)
GT_WIDTHS(GT_GER, cublasZgeru_v2, cuDoubleComplex)
GT_WIDTHS(GT_GER, cublasZgerc_v2, cuDoubleComplex)

#define GT_TRSV(name, I, T)                                                                                        \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, I n, \
                                const T*, I lda, T*, I inc) {                                                      \
    if (n < 0 || lda < least_ld(n) || !inc) return CUBLAS_STATUS_INVALID_VALUE;                                    \
    return launch_vector(handle, Kernel::Trsv, kVectorType<T>, n);                                                 \
  }
GT_TYPES(GT_TRSV, trsv, _v2)
GT_TYPES(GT_TRSV, trmv, _v2)

#define GT_SYMV(name, I, T)                                                                                    \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, I n, const T* alpha, const T*, I lda, \
                                const T*, I inc_x, const T* beta, T*, I inc_y) {                               \
    return times_vector(handle, CUBLAS_OP_N, kVectorType<T>, n, n, lda, inc_x, inc_y, alpha && beta);          \
  }
GT_TYPES(GT_SYMV, symv, _v2)
GT_WIDTHS(GT_SYMV, cublasChemv_v2, cuComplex)
GT_WIDTHS(GT_SYMV, cublasZhemv_v2, cuDoubleComplex)

#define GT_SYR(name, I, A, T)                                                                                      \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, I n, const A* alpha, const T*, I inc, T*, \
                                I lda) {                                                                           \
    if (n < 0 || !inc || lda < least_ld(n) || !alpha) return CUBLAS_STATUS_INVALID_VALUE;                          \
    return launch_vector(handle, Kernel::Ger, kVectorType<T>, static_cast<long long>(n) * n);                      \
  }
GT_WIDTHS(GT_SYR, cublasSsyr_v2, float, float)
GT_WIDTHS(GT_SYR, cublasDsyr_v2, double, double)
GT_WIDTHS(GT_SYR, cublasCsyr_v2, cuComplex, cuComplex)
GT_WIDTHS(GT_SYR, cublasZsyr_v2, cuDoubleComplex, cuDoubleComplex)
GT_WIDTHS(GT_SYR, cublasCher_v2, float, cuComplex)
GT_WIDTHS(GT_SYR, cublasZher_v2, double, cuDoubleComplex)

#define GT_SYR2(name, I, T)                                                                                      \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, I n, const T* alpha, const T*, I inc_x, \
                                const T*, I inc_y, T*, I lda) {                                                  \
    if (n < 0 || !inc_x || !inc_y || lda < least_ld(n) || !alpha) return CUBLAS_STATUS_INVALID_VALUE;            \
    return launch_vector(handle, Kernel::Ger, kVectorType<T>, static_cast<long long>(n) * n);                    \
  }
GT_TYPES(GT_SYR2, syr2, _v2)
GT_WIDTHS(GT_SYR2, cublasCher2_v2, cuComplex)
GT_WIDTHS(GT_SYR2, cublasZher2_v2, cuDoubleComplex)

// ------------------------------------------------------------------ products of which a triangle counts: as a whole one
#define GT_SYRK(name, I, A, T)                                                                                      \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, cublasOperation_t op, I n, I k,            \
                                const A* alpha, const T* a, I lda, const A* beta, T* c, I ldc) {                    \
    const auto other = op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;                                               \
    return multiply(handle,                                                                                         \
                    {op, other, n, n, k, alpha, a, kTypeOf<T>, lda, a, kTypeOf<T>, lda, beta, c, kTypeOf<T>, ldc}); \
  }
GT_WIDTHS(GT_SYRK, cublasSsyrk_v2, float, float)
GT_WIDTHS(GT_SYRK, cublasDsyrk_v2, double, double)
GT_WIDTHS(GT_SYRK, cublasCsyrk_v2, cuComplex, cuComplex)
GT_WIDTHS(GT_SYRK, cublasZsyrk_v2, cuDoubleComplex, cuDoubleComplex)
GT_WIDTHS(GT_SYRK, cublasCherk_v2, float, cuComplex)
GT_WIDTHS(GT_SYRK, cublasZherk_v2, double, cuDoubleComplex)

#define GT_SYR2K(name, I, B, T)                                                                                     \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t, cublasOperation_t op, I n, I k,            \
                                const T* alpha, const T* a, I lda, const T* b, I ldb, const B* beta, T* c, I ldc) { \
    const auto other = op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;                                               \
    return multiply(handle,                                                                                         \
                    {op, other, n, n, k, alpha, a, kTypeOf<T>, lda, b, kTypeOf<T>, ldb, beta, c, kTypeOf<T>, ldc}); \
  }
#define GT_SYR2K_KINDS(kind, tail)                                              \
  GT_WIDTHS(GT_SYR2K, cublasSsyr##kind##tail, float, float)                     \
  GT_WIDTHS(GT_SYR2K, cublasDsyr##kind##tail, double, double)                   \
  GT_WIDTHS(GT_SYR2K, cublasCsyr##kind##tail, cuComplex, cuComplex)             \
  GT_WIDTHS(GT_SYR2K, cublasZsyr##kind##tail, cuDoubleComplex, cuDoubleComplex) \
  GT_WIDTHS(GT_SYR2K, cublasCher##kind##tail, float, cuComplex)                 \
  GT_WIDTHS(GT_SYR2K, cublasZher##kind##tail, double, cuDoubleComplex)
GT_SYR2K_KINDS(2k, _v2)
GT_SYR2K_KINDS(kx, )

#define GT_SYMM(name, I, T)                                                                                         \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, I m, I n,           \
                                const T* alpha, const T* a, I lda, const T* b, I ldb, const T* beta, T* c, I ldc) { \
    const bool left = side == CUBLAS_SIDE_LEFT;                                                                     \
    const I k = left ? m : n;                                                                                       \
    return multiply(handle, {CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, left ? a : b, kTypeOf<T>, left ? lda : ldb,  \
                             left ? b : a, kTypeOf<T>, left ? ldb : lda, beta, c, kTypeOf<T>, ldc});                \
  }
GT_TYPES(GT_SYMM, symm, _v2)
GT_WIDTHS(GT_SYMM, cublasChemm_v2, cuComplex)
GT_WIDTHS(GT_SYMM, cublasZhemm_v2, cuDoubleComplex)

#define GT_TRMM(name, I, T)                                                                                           \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t op, \
                                cublasDiagType_t, I m, I n, const T* alpha, const T* a, I lda, const T* b, I ldb,     \
                                T* c, I ldc) {                                                                        \
    const bool left = side == CUBLAS_SIDE_LEFT;                                                                       \
    return multiply(handle, {left ? op : CUBLAS_OP_N, left ? CUBLAS_OP_N : op, m, n, left ? m : n, alpha,             \
                             left ? a : b, kTypeOf<T>, left ? lda : ldb, left ? b : a, kTypeOf<T>, left ? ldb : lda,  \
                             alpha, c, kTypeOf<T>, ldc});                                                             \
  }
GT_TYPES(GT_TRMM, trmm, _v2)

#define GT_TRSM(name, I, T)                                                                                         \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,                \
                                cublasOperation_t, cublasDiagType_t, I m, I n, const T* alpha, const T*, I lda, T*, \
                                I ldb) {                                                                            \
    return solve(handle, Kernel::Trsm, kVectorType<T>, side, fill, m, n, lda, ldb, alpha != nullptr);               \
  }
#define GT_TRSM_BATCHED(name, I, T)                                                                                 \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,                \
                                cublasOperation_t, cublasDiagType_t, I m, I n, const T* alpha, const T* const[],    \
                                I lda, T* const[], I ldb, I batch) {                                                \
    if (batch < 0) return CUBLAS_STATUS_INVALID_VALUE;                                                              \
    return solve(handle, Kernel::TrsmBatched, kVectorType<T>, side, fill, m, n, lda, ldb, alpha != nullptr, batch); \
  }
GT_TYPES(GT_TRSM, trsm, _v2)
GT_TYPES(GT_TRSM_BATCHED, trsmBatched, )

#define GT_GEAM(name, I, T)                                                                                            \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, I m, I n, const T* alpha, \
                                const T*, I, const T* beta, const T*, I, T*, I ldc) {                                  \
    if (m < 0 || n < 0 || ldc < least_ld(m) || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;                    \
    return launch_vector(handle, Kernel::Geam, kVectorType<T>, static_cast<long long>(m) * n);                         \
  }
#define GT_DGMM(name, I, T)                                                                                      \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, cublasSideMode_t, I m, I n, const T*, I, const T*, I, T*, \
                                I ldc) {                                                                         \
    if (m < 0 || n < 0 || ldc < least_ld(m)) return CUBLAS_STATUS_INVALID_VALUE;                                 \
    return launch_vector(handle, Kernel::Dgmm, kVectorType<T>, static_cast<long long>(m) * n);                   \
  }
GT_TYPES(GT_GEAM, geam, )
GT_TYPES(GT_DGMM, dgmm, )
