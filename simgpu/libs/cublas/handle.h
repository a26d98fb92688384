// A cuBLAS handle: what its setters were given.
#pragma once

#include <cuda.h>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cublas/types.h"

struct cublasContext {
  static constexpr unsigned kLives = 0x73756c62;
  simlibs::DeviceFacts device;  // first, as in cuBLASLt's handle: one of cuBLAS's may be given there
  unsigned lives = kLives;      // a handle that was destroyed is not taken
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  int sm_count_target = 0;
  int emulation_strategy = 0, emulation_special_values = 0, mantissa_control = 0, mantissa_bits = 0,
      mantissa_offset = 0;
  int* mantissa_pointer = nullptr;
  CUdeviceptr own_workspace = 0;
  size_t own_workspace_bytes = 0;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace simlibs {

inline bool lives(cublasHandle_t handle) { return handle && handle->lives == cublasContext::kLives; }
inline CUstream stream_of(cublasHandle_t handle) { return reinterpret_cast<CUstream>(handle->stream); }
// Whether single precision may be multiplied as TF32.
inline bool allows_tf32(cublasHandle_t handle) {
  const int mode = handle->math_mode & 15;
  return mode == CUBLAS_TF32_TENSOR_OP_MATH || mode == CUBLAS_TENSOR_OP_MATH;
}
inline cublasStatus_t status_of(CUresult result) {
  if (result == CUDA_SUCCESS) return CUBLAS_STATUS_SUCCESS;
  return result == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace simlibs
