// Handles, versions and texts of cuDNN.
#include "simgpu/libs/cudnn/handle.h"

#include <algorithm>
#include <cstdio>

using namespace simlibs;

namespace simlibs {

cudnnStatus_t launch_over(cudnnHandle_t handle, const char* kernel, long long n, unsigned block) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  const OnDevice on_device(handle->device);
  constexpr unsigned kMostBlocks = 65535;
  const unsigned blocks = std::min(tiles(n, block), kMostBlocks);
  return status_of(
      launch(kernel, stream_of(handle), {{blocks, 1, 1}, {block, 1, 1}}, {nullptr, nullptr, nullptr, 0, n, 1}));
}

}  // namespace simlibs

namespace {
const char* name_of(int code) {
  if (soname_major() == 8) {  // its numbers were others
    static const char* const names[] = {"SUCCESS",          "NOT_INITIALIZED", "ALLOC_FAILED",  "BAD_PARAM",
                                        "INTERNAL_ERROR",   "INVALID_VALUE",   "ARCH_MISMATCH", "MAPPING_ERROR",
                                        "EXECUTION_FAILED", "NOT_SUPPORTED"};
    return code >= 0 && code <= 9 ? names[code] : "UNKNOWN";
  }
  if (code == 0) return "SUCCESS";
  if (code == CUDNN_STATUS_NOT_INITIALIZED) return "NOT_INITIALIZED";
  switch (code / 1000) {
    case 2:
      return "BAD_PARAM";
    case 3:
      return "NOT_SUPPORTED";
    case 4:
      return "INTERNAL_ERROR";
    case 5:
      return "EXECUTION_FAILED";
    default:
      return "UNKNOWN";
  }
}
}  // namespace

GT_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (!handle) return bad_param();
  if (enter_context() != CUDA_SUCCESS) return status(CUDNN_STATUS_NOT_INITIALIZED);
  *handle = new cudnnContext{device_facts(), nullptr};
  return success();
}
GT_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  handle->stream = stream;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (!handle) return status(CUDNN_STATUS_NOT_INITIALIZED);
  if (!stream) return bad_param();
  *stream = handle->stream;
  return success();
}
GT_EXPORT size_t cudnnGetVersion() { return static_cast<size_t>(cudnn_version()); }
GT_EXPORT size_t cudnnGetMaxDeviceVersion() { return 1210; }
// The runtime that it was built with; one library serves programs of both majors, so it says the older.
GT_EXPORT size_t cudnnGetCudartVersion() { return 12000; }
GT_EXPORT cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (!value) return bad_param();
  const int version = cudnn_version(), major = soname_major() == 8 ? 1000 : 10000;
  switch (static_cast<int>(type)) {
    case MAJOR_VERSION:
      *value = version / major;
      return success();
    case MINOR_VERSION:
      *value = version % major / 100;
      return success();
    case PATCH_LEVEL:
      *value = version % 100;
      return success();
    default:
      return bad_param();
  }
}
GT_EXPORT const char* cudnnGetErrorString(cudnnStatus_t code) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "CUDNN_STATUS_%s", name_of(code));
  return text;
}
GT_EXPORT void cudnnGetLastErrorString(char* message, size_t bytes) {
  if (message && bytes) message[0] = '\0';
}
GT_EXPORT cudnnStatus_t cudnnSetCallback(unsigned, void*, cudnnCallback_t) { return success(); }
GT_EXPORT cudnnStatus_t cudnnGetCallback(unsigned* mask, void** data, cudnnCallback_t* function) {
  if (mask) *mask = 0;
  if (data) *data = nullptr;
  if (function) *function = nullptr;
  return success();
}
GT_EXPORT cudnnStatus_t cudnnGraphVersionCheck() { return success(); }
GT_EXPORT cudnnStatus_t cudnnOpsVersionCheck() { return success(); }
GT_EXPORT cudnnStatus_t cudnnCnnVersionCheck() { return success(); }
GT_EXPORT cudnnStatus_t cudnnAdvVersionCheck() { return success(); }
// Version 8 had its libraries in halves.
GT_EXPORT cudnnStatus_t cudnnOpsInferVersionCheck();
GT_EXPORT cudnnStatus_t cudnnOpsTrainVersionCheck();
GT_EXPORT cudnnStatus_t cudnnCnnInferVersionCheck();
GT_EXPORT cudnnStatus_t cudnnCnnTrainVersionCheck();
GT_EXPORT cudnnStatus_t cudnnAdvInferVersionCheck();
GT_EXPORT cudnnStatus_t cudnnAdvTrainVersionCheck();
cudnnStatus_t cudnnOpsInferVersionCheck() { return success(); }
cudnnStatus_t cudnnOpsTrainVersionCheck() { return success(); }
cudnnStatus_t cudnnCnnInferVersionCheck() { return success(); }
cudnnStatus_t cudnnCnnTrainVersionCheck() { return success(); }
cudnnStatus_t cudnnAdvInferVersionCheck() { return success(); }
cudnnStatus_t cudnnAdvTrainVersionCheck() { return success(); }
