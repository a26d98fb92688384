// cuBLAS's factorizations of many small matrices: one kernel over the batch. Whether a matrix was singular is not known here: `info`, which
// lies on the device, stays what it was; the `info` about arguments, which lies on the host, is right.
#include "simgpu/libs/cublas/vector.h"
#include "simgpu/libs/cublas/widths.h"

using simlibs::kVectorType;
using simlibs::launch_vector;
using simlibs::least_ld;
using Kernel = simlibs::VectorKernel;

namespace {

// `wrong`: the number of the first argument that cannot be, 0: none.
cublasStatus_t factor(cublasHandle_t handle, Kernel kernel, int type, long long elements, int batch, int wrong,
                      int* info) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (info) *info = -wrong;
  return wrong ? CUBLAS_STATUS_INVALID_VALUE : launch_vector(handle, kernel, type, elements, batch);
}

}  // namespace

#define GT_FACTORS(letter, T)                                                                                          \
  GT_EXPORT cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, T* const[], int lda, int*, int*, \
                                                        int batch) {                                                   \
    const int wrong = n < 0 ? 1 : lda < least_ld(n) ? 3 : batch < 0 ? 6 : 0;                                           \
    return factor(handle, Kernel::Getrf, kVectorType<T>, 32ll * n, batch, wrong, nullptr);                             \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublas##letter##getriBatched(cublasHandle_t handle, int n, const T* const[], int lda,       \
                                                        const int*, T* const[], int ldc, int*, int batch) {            \
    const int wrong = n < 0 ? 1 : lda < least_ld(n) ? 3 : ldc < least_ld(n) ? 6 : batch < 0 ? 8 : 0;                   \
    return factor(handle, Kernel::Getri, kVectorType<T>, 32ll * n, batch, wrong, nullptr);                             \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t handle, cublasOperation_t, int n, int columns,  \
                                                        const T* const[], int lda, const int*, T* const[], int ldb,    \
                                                        int* info, int batch) {                                        \
    const int wrong = n < 0               ? 2                                                                          \
                      : columns < 0       ? 3                                                                          \
                      : lda < least_ld(n) ? 5                                                                          \
                      : ldb < least_ld(n) ? 8                                                                          \
                      : batch < 0         ? 10                                                                         \
                                          : 0;                                                                                 \
    return factor(handle, Kernel::Getrs, kVectorType<T>, 32ll * n, batch, wrong, info);                                \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublas##letter##geqrfBatched(cublasHandle_t handle, int m, int n, T* const[], int lda,      \
                                                        T* const[], int* info, int batch) {                            \
    const int wrong = m < 0 ? 1 : n < 0 ? 2 : lda < least_ld(m) ? 4 : batch < 0 ? 7 : 0;                               \
    return factor(handle, Kernel::Geqrf, kVectorType<T>, 32ll * n, batch, wrong, info);                                \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublas##letter##gelsBatched(cublasHandle_t handle, cublasOperation_t, int m, int n,         \
                                                       int columns, T* const[], int lda, T* const[], int ldc,          \
                                                       int* info, int*, int batch) {                                   \
    const int wrong = m < 0               ? 2                                                                          \
                      : n < 0             ? 3                                                                          \
                      : columns < 0       ? 4                                                                          \
                      : lda < least_ld(m) ? 6                                                                          \
                      : ldc < least_ld(m) ? 8                                                                          \
                      : batch < 0         ? 11                                                                         \
                                          : 0;                                                                                 \
    return factor(handle, Kernel::Gels, kVectorType<T>, 32ll * n, batch, wrong, info);                                 \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublas##letter##matinvBatched(cublasHandle_t handle, int n, const T* const[], int lda,      \
                                                         T* const[], int lda_inverse, int*, int batch) {               \
    const int wrong = n < 0 || n > 32 ? 1 : lda < least_ld(n) ? 3 : lda_inverse < least_ld(n) ? 5 : batch < 0 ? 7 : 0; \
    return factor(handle, Kernel::Matinv, kVectorType<T>, 32ll * n, batch, wrong, nullptr);                            \
  }
GT_FACTORS(S, float)
GT_FACTORS(D, double)
GT_FACTORS(C, cuComplex)
GT_FACTORS(Z, cuDoubleComplex)
