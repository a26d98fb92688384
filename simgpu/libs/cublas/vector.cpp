#include "simgpu/libs/cublas/vector.h"

#include <algorithm>
#include <cstring>

#include "simgpu/libs/cublas/widths.h"

namespace simlibs {
namespace {

struct VectorNames {
  const char* names[4];
  unsigned threads;
};
constexpr VectorNames kVectorKernels[] = {
#define GT_VECTOR_KERNEL(name, symbol, body, threads) \
  {{#symbol "fEvPKvl", #symbol "dEvPKvl", #symbol "6float2EvPKvl", #symbol "7double2EvPKvl"}, threads},
#include "simgpu/libs/cublas/vector_kernels.def"
};

}  // namespace

cublasStatus_t launch_vector(cublasHandle_t handle, VectorKernel which, int type, long long n, long long layers) {
  if (!lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const OnDevice on_device(handle->device);
  if (n < 0 || layers < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0 || layers == 0) return CUBLAS_STATUS_SUCCESS;
  constexpr long long kMost = 65535;
  const VectorNames& kernel = kVectorKernels[static_cast<int>(which)];
  const LaunchShape shape{{std::min(tiles(n, kernel.threads), static_cast<unsigned>(kMost)), 1,
                           static_cast<unsigned>(std::min(layers, kMost))},
                          {kernel.threads, 1, 1}};
  return status_of(launch(kernel.names[type], stream_of(handle), shape, {nullptr, nullptr, nullptr, 0, n, 1}));
}

cublasStatus_t reduce_vector(cublasHandle_t handle, VectorKernel kernel, int type, long long n, void* result,
                             size_t result_bytes) {
  if (!lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = launch_vector(handle, kernel, type, std::max(0ll, n));
  if (status == CUBLAS_STATUS_SUCCESS && n > 0) status = launch_vector(handle, VectorKernel::ReduceBlock, type, 1);
  if (status != CUBLAS_STATUS_SUCCESS || handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return status;
  status = status_of(cuStreamSynchronize(stream_of(handle)));
  std::memset(result, 0, result_bytes);
  return status;
}

}  // namespace simlibs

using simlibs::kVectorType;
using simlibs::launch_vector;
using simlibs::reduce_vector;
using simlibs::vector_type;
using Kernel = simlibs::VectorKernel;

#define GT_SCAL(name, I, A, T)                                                       \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const A* alpha, T*, I) { \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                  \
    return launch_vector(handle, Kernel::Scal, kVectorType<T>, n > 0 ? n : 0);       \
  }
GT_WIDTHS(GT_SCAL, cublasSscal_v2, float, float)
GT_WIDTHS(GT_SCAL, cublasDscal_v2, double, double)
GT_WIDTHS(GT_SCAL, cublasCscal_v2, cuComplex, cuComplex)
GT_WIDTHS(GT_SCAL, cublasZscal_v2, cuDoubleComplex, cuDoubleComplex)
GT_WIDTHS(GT_SCAL, cublasCsscal_v2, float, cuComplex)
GT_WIDTHS(GT_SCAL, cublasZdscal_v2, double, cuDoubleComplex)

#define GT_AXPY(name, I, T)                                                                       \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const T* alpha, const T*, I, T*, I) { \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                               \
    return launch_vector(handle, Kernel::Axpy, kVectorType<T>, n > 0 ? n : 0);                    \
  }
#define GT_COPY(name, I, T)                                                       \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const T*, I, T*, I) { \
    return launch_vector(handle, Kernel::Copy, kVectorType<T>, n > 0 ? n : 0);    \
  }
#define GT_SWAP(name, I, T)                                                    \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, T*, I, T*, I) {    \
    return launch_vector(handle, Kernel::Swap, kVectorType<T>, n > 0 ? n : 0); \
  }
GT_TYPES(GT_AXPY, axpy, _v2)
GT_TYPES(GT_COPY, copy, _v2)
GT_TYPES(GT_SWAP, swap, _v2)

#define GT_DOT(name, I, T)                                                                         \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const T*, I, const T*, I, T* result) { \
    return reduce_vector(handle, Kernel::Dot, kVectorType<T>, n, result, sizeof *result);          \
  }
GT_WIDTHS(GT_DOT, cublasSdot_v2, float)
GT_WIDTHS(GT_DOT, cublasDdot_v2, double)
GT_WIDTHS(GT_DOT, cublasCdotu_v2, cuComplex)
GT_WIDTHS(GT_DOT, cublasCdotc_v2, cuComplex)
GT_WIDTHS(GT_DOT, cublasZdotu_v2, cuDoubleComplex)
GT_WIDTHS(GT_DOT, cublasZdotc_v2, cuDoubleComplex)

#define GT_REDUCTION(name, I, kernel, T, R)                                                  \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const T*, I, R* result) {        \
    return reduce_vector(handle, Kernel::kernel, kVectorType<T>, n, result, sizeof *result); \
  }
GT_WIDTHS(GT_REDUCTION, cublasSnrm2_v2, Norm, float, float)
GT_WIDTHS(GT_REDUCTION, cublasDnrm2_v2, Norm, double, double)
GT_WIDTHS(GT_REDUCTION, cublasScnrm2_v2, Norm, cuComplex, float)
GT_WIDTHS(GT_REDUCTION, cublasDznrm2_v2, Norm, cuDoubleComplex, double)
GT_WIDTHS(GT_REDUCTION, cublasSasum_v2, Asum, float, float)
GT_WIDTHS(GT_REDUCTION, cublasDasum_v2, Asum, double, double)
GT_WIDTHS(GT_REDUCTION, cublasScasum_v2, Asum, cuComplex, float)
GT_WIDTHS(GT_REDUCTION, cublasDzasum_v2, Asum, cuDoubleComplex, double)

#define GT_EXTREME(name, I, T)                                                                \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, const T*, I, I* result) {         \
    return reduce_vector(handle, Kernel::Extreme, kVectorType<T>, n, result, sizeof *result); \
  }
#define GT_EXTREMES(which)                                \
  GT_WIDTHS(GT_EXTREME, cublasIsa##which##_v2, float)     \
  GT_WIDTHS(GT_EXTREME, cublasIda##which##_v2, double)    \
  GT_WIDTHS(GT_EXTREME, cublasIca##which##_v2, cuComplex) \
  GT_WIDTHS(GT_EXTREME, cublasIza##which##_v2, cuDoubleComplex)
GT_EXTREMES(max)
GT_EXTREMES(min)

#define GT_ROT(name, I, T, C, S)                                                                \
  GT_EXPORT cublasStatus_t name(cublasHandle_t handle, I n, T*, I, T*, I, const C*, const S*) { \
    return launch_vector(handle, Kernel::Rot, kVectorType<T>, n > 0 ? n : 0);                   \
  }
GT_WIDTHS(GT_ROT, cublasSrot_v2, float, float, float)
GT_WIDTHS(GT_ROT, cublasDrot_v2, double, double, double)
GT_WIDTHS(GT_ROT, cublasCrot_v2, cuComplex, float, cuComplex)
GT_WIDTHS(GT_ROT, cublasZrot_v2, cuDoubleComplex, double, cuDoubleComplex)
GT_WIDTHS(GT_ROT, cublasCsrot_v2, cuComplex, float, float)
GT_WIDTHS(GT_ROT, cublasZdrot_v2, cuDoubleComplex, double, double)

// ------------------------------------------------------------------ of any type
#define GT_ANY(name, I, ...)                                                                                           \
  GT_EXPORT cublasStatus_t cublasDot##name(cublasHandle_t handle, I n, const void*, cudaDataType type, I, const void*, \
                                           cudaDataType, I, void* result, cudaDataType result_type, cudaDataType) {    \
    return reduce_vector(handle, Kernel::Dot, vector_type(type), n, result,                                            \
                         result_type == CUDA_R_64F || result_type == CUDA_C_32F ? 8 : 4);                              \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublasNrm2##name(cublasHandle_t handle, I n, const void*, cudaDataType type, I,             \
                                            void* result, cudaDataType result_type, cudaDataType) {                    \
    return reduce_vector(handle, Kernel::Norm, vector_type(type), n, result, result_type == CUDA_R_64F ? 8 : 4);       \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublasScal##name(cublasHandle_t handle, I n, const void* alpha, cudaDataType, void*,        \
                                            cudaDataType type, I, cudaDataType) {                                      \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                                                    \
    return launch_vector(handle, Kernel::Scal, vector_type(type), n > 0 ? n : 0);                                      \
  }                                                                                                                    \
  GT_EXPORT cublasStatus_t cublasAxpy##name(cublasHandle_t handle, I n, const void* alpha, cudaDataType, const void*,  \
                                            cudaDataType type, I, void*, cudaDataType, I, cudaDataType) {              \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                                                    \
    return launch_vector(handle, Kernel::Axpy, vector_type(type), n > 0 ? n : 0);                                      \
  }
GT_ANY(Ex, int)
GT_ANY(Ex_64, int64_t)
