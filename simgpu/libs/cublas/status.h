// Names and texts of cuBLAS's status, which cuBLASLt shares.
#pragma once

#include "simgpu/libs/common/version.h"
#include "simgpu/libs/cublas/types.h"

namespace simlibs {

inline const char* name_of(cublasStatus_t status) {
  switch (static_cast<int>(status)) {
#define GT_NAME(name) \
  case name:          \
    return #name;
    GT_NAME(CUBLAS_STATUS_SUCCESS)
    GT_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    GT_NAME(CUBLAS_STATUS_ALLOC_FAILED)
    GT_NAME(CUBLAS_STATUS_INVALID_VALUE)
    GT_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    GT_NAME(CUBLAS_STATUS_MAPPING_ERROR)
    GT_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    GT_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    GT_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    GT_NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef GT_NAME
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

inline const char* text_of(cublasStatus_t status) {
  switch (static_cast<int>(status)) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "the function requires a feature that the device does not have";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "an access to GPU memory failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "the functionality requested requires a license";
    default:
      return "unknown status";
  }
}

inline cublasStatus_t cublas_property(libraryPropertyType type, int* value) {
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  const int version = cublas_version();
  switch (static_cast<int>(type)) {
    case MAJOR_VERSION:
      *value = version / 10000;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = version / 100 % 100;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = version % 100;
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

}  // namespace simlibs
