// cuBLAS's copies of vectors and matrices between host and device: real ones, by the driver.
#include <cuda.h>

#include "simgpu/libs/cublas/handle.h"

namespace {

struct Transfer {
  long long rows, columns, element_bytes;
  const void* from;
  long long from_ld;
  void* to;
  long long to_ld;
};

// Unified addresses: the driver finds out which side is the device.
cublasStatus_t copy(const Transfer& t, bool wait, cudaStream_t stream) {
  if (t.rows < 0 || t.columns < 0 || t.element_bytes <= 0 || t.from_ld < t.rows || t.to_ld < t.rows)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (t.rows == 0 || t.columns == 0) return CUBLAS_STATUS_SUCCESS;
  CUDA_MEMCPY2D shape{};
  shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  shape.srcDevice = reinterpret_cast<CUdeviceptr>(t.from);
  shape.dstDevice = reinterpret_cast<CUdeviceptr>(t.to);
  shape.srcPitch = static_cast<size_t>(t.from_ld * t.element_bytes);
  shape.dstPitch = static_cast<size_t>(t.to_ld * t.element_bytes);
  shape.WidthInBytes = static_cast<size_t>(t.rows * t.element_bytes);
  shape.Height = static_cast<size_t>(t.columns);
  const CUresult result = wait ? cuMemcpy2D(&shape) : cuMemcpy2DAsync(&shape, reinterpret_cast<CUstream>(stream));
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace

// A vector is a matrix of one row, its increment the leading dimension.
#define GT_TRANSFERS(direction, tail, I)                                                                              \
  GT_EXPORT cublasStatus_t cublas##direction##Vector##tail(I n, I bytes, const void* x, I inc_x, void* y, I inc_y) {  \
    return copy({1, n, bytes, x, inc_x, y, inc_y}, true, nullptr);                                                    \
  }                                                                                                                   \
  GT_EXPORT cublasStatus_t cublas##direction##Matrix##tail(I rows, I columns, I bytes, const void* a, I lda, void* b, \
                                                           I ldb) {                                                   \
    return copy({rows, columns, bytes, a, lda, b, ldb}, true, nullptr);                                               \
  }                                                                                                                   \
  GT_EXPORT cublasStatus_t cublas##direction##VectorAsync##tail(I n, I bytes, const void* x, I inc_x, void* y,        \
                                                                I inc_y, cudaStream_t stream) {                       \
    return copy({1, n, bytes, x, inc_x, y, inc_y}, false, stream);                                                    \
  }                                                                                                                   \
  GT_EXPORT cublasStatus_t cublas##direction##MatrixAsync##tail(I rows, I columns, I bytes, const void* a, I lda,     \
                                                                void* b, I ldb, cudaStream_t stream) {                \
    return copy({rows, columns, bytes, a, lda, b, ldb}, false, stream);                                               \
  }
GT_TRANSFERS(Set, , int)
GT_TRANSFERS(Get, , int)
GT_TRANSFERS(Set, _64, int64_t)
GT_TRANSFERS(Get, _64, int64_t)
