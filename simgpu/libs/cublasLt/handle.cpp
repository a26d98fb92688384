// Handles of cuBLASLt, versions, texts, the logger that says nothing.
#include <cuda.h>

#include "simgpu/libs/common/launch.h"
#include "simgpu/libs/common/version.h"
#include "simgpu/libs/cublas/status.h"
#include "simgpu/libs/cublasLt/descriptor.h"

using simlibs::device_facts;

GT_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  if (simlibs::enter_context() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device_facts()};
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
GT_EXPORT const char* cublasLtGetStatusName(cublasStatus_t status) { return simlibs::name_of(status); }
GT_EXPORT const char* cublasLtGetStatusString(cublasStatus_t status) { return simlibs::text_of(status); }
GT_EXPORT size_t cublasLtGetVersion() { return static_cast<size_t>(simlibs::cublas_version()); }
GT_EXPORT size_t cublasLtGetCudartVersion() { return static_cast<size_t>(simlibs::soname_major()) * 1000; }
GT_EXPORT cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  return simlibs::cublas_property(type, value);
}
GT_EXPORT cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasLtLoggerSetLevel(int) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
GT_EXPORT cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }
// There is no processor code to choose: what was disabled before is nothing.
GT_EXPORT unsigned cublasLtDisableCpuInstructionsSetMask(unsigned) { return 0; }
GT_EXPORT cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t* capacity) {
  if (!capacity) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = 0;
  return CUBLAS_STATUS_SUCCESS;
}
GT_EXPORT cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t) { return CUBLAS_STATUS_SUCCESS; }
