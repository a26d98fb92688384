// A cuDNN handle, and the status numbers of both majors.
#pragma once

#include <cuda.h>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/common/version.h"
#include "simgpu/libs/cudnn/types.h"

struct cudnnContext {
  simlibs::DeviceFacts device;
  cudaStream_t stream = nullptr;
};

namespace simlibs {

inline CUstream stream_of(cudnnHandle_t handle) { return reinterpret_cast<CUstream>(handle->stream); }

// The number of cuDNN 9, or what version 8 had in its place.
inline cudnnStatus_t status(int code) {
  if (soname_major() >= 9 || code == CUDNN_STATUS_SUCCESS) return static_cast<cudnnStatus_t>(code);
  switch (code) {
    case CUDNN_STATUS_NOT_INITIALIZED:
      return static_cast<cudnnStatus_t>(1);
    case CUDNN_STATUS_BAD_PARAM:
      return static_cast<cudnnStatus_t>(3);
    case CUDNN_STATUS_NOT_SUPPORTED:
      return static_cast<cudnnStatus_t>(9);
    case CUDNN_STATUS_EXECUTION_FAILED:
      return static_cast<cudnnStatus_t>(8);
    default:
      return static_cast<cudnnStatus_t>(4);
  }
}
inline cudnnStatus_t success() { return status(CUDNN_STATUS_SUCCESS); }
inline cudnnStatus_t bad_param() { return status(CUDNN_STATUS_BAD_PARAM); }
inline cudnnStatus_t not_supported() { return status(CUDNN_STATUS_NOT_SUPPORTED); }
inline cudnnStatus_t status_of(CUresult result) {
  return status(result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED);
}

// As cudnnGetVersion says it: a release of each major not older than what frameworks are built against.
inline int cudnn_version() { return soname_major() == 8 ? 8907 : 92800; }

// One kernel over n elements: what every layer that does not multiply launches.
cudnnStatus_t launch_over(cudnnHandle_t handle, const char* kernel, long long n, unsigned block = 256);

}  // namespace simlibs
