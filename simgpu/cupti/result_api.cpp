// Version, results, last error.
#include "simgpu/cupti/entry.h"
#include "simgpu/cupti/layout.h"

using namespace simgpu::cupti;

namespace {

struct ResultText {
  CUptiResult result;
  const char* name;
  const char* message;
};

#define GT_RESULT(name, message) \
  { name, #name, message }
constexpr ResultText kResults[] = {
    GT_RESULT(CUPTI_SUCCESS, "No error"),
    GT_RESULT(CUPTI_ERROR_INVALID_PARAMETER, "One or more of the parameters is invalid"),
    GT_RESULT(CUPTI_ERROR_INVALID_DEVICE, "The device does not correspond to a valid CUDA device"),
    GT_RESULT(CUPTI_ERROR_INVALID_CONTEXT, "The context is NULL or not valid"),
    GT_RESULT(CUPTI_ERROR_INVALID_OPERATION, "The current operation cannot be performed due to the current state"),
    GT_RESULT(CUPTI_ERROR_OUT_OF_MEMORY, "Unable to allocate enough memory to perform the operation"),
    GT_RESULT(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "The output buffer is too small"),
    GT_RESULT(CUPTI_ERROR_API_NOT_IMPLEMENTED, "The call is not implemented"),
    GT_RESULT(CUPTI_ERROR_MAX_LIMIT_REACHED, "The maximum limit is reached"),
    GT_RESULT(CUPTI_ERROR_NOT_READY, "The object is not yet ready"),
    GT_RESULT(CUPTI_ERROR_NOT_COMPATIBLE, "The current operation is not compatible with the current state"),
    GT_RESULT(CUPTI_ERROR_NOT_INITIALIZED, "CUPTI is unable to initialize its connection to the CUDA driver"),
    GT_RESULT(CUPTI_ERROR_QUEUE_EMPTY, "The queue is empty"),
    GT_RESULT(CUPTI_ERROR_INVALID_HANDLE, "The handle is invalid"),
    GT_RESULT(CUPTI_ERROR_INVALID_STREAM, "The stream is invalid"),
    GT_RESULT(CUPTI_ERROR_INVALID_KIND, "The activity kind is invalid"),
    GT_RESULT(CUPTI_ERROR_DISABLED, "CUPTI is disabled"),
    GT_RESULT(CUPTI_ERROR_INVALID_MODULE, "The module is invalid"),
    GT_RESULT(CUPTI_ERROR_HARDWARE_BUSY, "The hardware is busy"),
    GT_RESULT(CUPTI_ERROR_NOT_SUPPORTED, "The operation is not supported"),
    GT_RESULT(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "Profiling on a virtualized GPU is not supported"),
    GT_RESULT(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "The user does not have the privileges to profile"),
    GT_RESULT(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, "The old profiler API is in use"),
    GT_RESULT(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "The legacy profiler is not supported on this device"),
    GT_RESULT(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "Multiple CUPTI subscribers are not supported"),
    GT_RESULT(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "Confidential computing is not supported"),
    GT_RESULT(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "MIG is not supported"),
    GT_RESULT(CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "WSL is not supported"),
    GT_RESULT(CUPTI_ERROR_UNKNOWN, "An unknown internal error has occurred"),
};
#undef GT_RESULT

const ResultText* find_result(CUptiResult result) {
  for (const ResultText& known : kResults) {
    if (known.result == result) return &known;
  }
  return nullptr;
}

}  // namespace

CUPTI_SIM(cuptiGetVersion, nothing, (uint32_t * version), (version)) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = layout().api_version;
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetResultString, nothing, (CUptiResult result, const char** text), (result, text)) {
  const ResultText* known = find_result(result);
  if (text == nullptr || known == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = known->name;
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetErrorMessage, nothing, (CUptiResult result, const char** text), (result, text)) {
  const ResultText* known = find_result(result);
  if (text == nullptr || known == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = known->message;
  return CUPTI_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) CUptiResult CUPTIAPI cuptiGetLastError() { return take_last_error(); }
