// Handles of cuBLAS, their settings, versions and texts.
#include "simgpu/libs/cublas/handle.h"

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/cublas/status.h"

namespace {

// What cublasCreate allocates on the device: 32 MiB on 9.0 and later, 4 MiB before.
size_t default_workspace_bytes() { return simlibs::capability() >= 90 ? size_t{32} << 20 : size_t{4} << 20; }

template <typename T, typename V>
cublasStatus_t set(cublasHandle_t handle, T cublasContext::*member, V value, bool valid = true) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  handle->*member = static_cast<T>(value);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T, typename V>
cublasStatus_t get(cublasHandle_t handle, T cublasContext::*member, V* value) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  *value = static_cast<V>(handle->*member);
  return CUBLAS_STATUS_SUCCESS;
}

cublasLogCallback log_callback = nullptr;

}  // namespace

GT_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  if (simlibs::enter_context() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  CUdeviceptr workspace = 0;
  const size_t bytes = default_workspace_bytes();
  if (cuMemAlloc(&workspace, bytes) != CUDA_SUCCESS) return CUBLAS_STATUS_ALLOC_FAILED;
  auto* made = new cublasContext;
  made->device = simlibs::device_facts();
  made->own_workspace = workspace;
  made->own_workspace_bytes = bytes;
  made->workspace = reinterpret_cast<void*>(workspace);
  made->workspace_bytes = bytes;
  *handle = made;
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!simlibs::lives(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  cuMemFree(handle->own_workspace);
  handle->lives = 0;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

GT_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  const cublasStatus_t status = set(handle, &cublasContext::stream, stream);
  if (status == CUBLAS_STATUS_SUCCESS) {  // the manual: setting the stream gives the default workspace back
    handle->workspace = reinterpret_cast<void*>(handle->own_workspace);
    handle->workspace_bytes = handle->own_workspace_bytes;
  }
  return status;
}
GT_EXPORT cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return get(handle, &cublasContext::stream, stream);
}
GT_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  // At least 256 bytes aligned, as the manual asks.
  const cublasStatus_t status =
      set(handle, &cublasContext::workspace, workspace, reinterpret_cast<size_t>(workspace) % 256 == 0);
  if (status == CUBLAS_STATUS_SUCCESS) handle->workspace_bytes = bytes;
  return status;
}
GT_EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set(handle, &cublasContext::math_mode, mode);
}
GT_EXPORT cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return get(handle, &cublasContext::math_mode, mode);
}
GT_EXPORT cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set(handle, &cublasContext::pointer_mode, mode,
             mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE);
}
GT_EXPORT cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return get(handle, &cublasContext::pointer_mode, mode);
}
GT_EXPORT cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return set(handle, &cublasContext::atomics_mode, mode);
}
GT_EXPORT cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return get(handle, &cublasContext::atomics_mode, mode);
}
GT_EXPORT cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  return set(handle, &cublasContext::sm_count_target, count, count >= 0);
}
GT_EXPORT cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return get(handle, &cublasContext::sm_count_target, count);
}

GT_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = simlibs::cublas_version();
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return simlibs::cublas_property(type, value);
}
GT_EXPORT size_t cublasGetCudartVersion() { return static_cast<size_t>(simlibs::soname_major()) * 1000; }
GT_EXPORT const char* cublasGetStatusName(cublasStatus_t status) { return simlibs::name_of(status); }
GT_EXPORT const char* cublasGetStatusString(cublasStatus_t status) { return simlibs::text_of(status); }
GT_EXPORT cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback) {
  log_callback = callback;
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (!callback) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = log_callback;
  return CUBLAS_STATUS_SUCCESS;
}
