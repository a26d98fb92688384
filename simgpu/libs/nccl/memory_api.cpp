// Memory, and what the library says of itself. Registration makes nothing faster here: a handle stands for it.
#include <cuda.h>

#include "simgpu/libs/nccl/communicator.h"
#include "simgpu/libs/nccl/entry.h"

using namespace simlibs;

NCCL_ENTRY(ncclResult_t, ncclMemAlloc, (void** out, size_t bytes)) {
  if (!out || bytes == 0) return ncclInvalidArgument;
  CUdeviceptr address = 0;
  if (cuMemAlloc(&address, bytes) != CUDA_SUCCESS) return ncclUnhandledCudaError;
  *out = reinterpret_cast<void*>(address);
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclMemFree, (void* memory)) {
  return !memory || cuMemFree(reinterpret_cast<CUdeviceptr>(memory)) == CUDA_SUCCESS ? ncclSuccess
                                                                                     : ncclUnhandledCudaError;
}
NCCL_ENTRY(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void* memory, size_t bytes, void** handle)) {
  if (!communicator_of(comm) || !memory || bytes == 0 || !handle) return ncclInvalidArgument;
  *handle = memory;
  return ncclSuccess;
}
NCCL_ENTRY(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle)) {
  return communicator_of(comm) && handle ? ncclSuccess : ncclInvalidArgument;
}

NCCL_ENTRY(ncclResult_t, ncclGetVersion, (int* version)) {
  if (!version) return ncclInvalidArgument;
  *version = kNcclVersion;
  return ncclSuccess;
}
NCCL_ENTRY(const char*, ncclGetErrorString, (ncclResult_t code)) {
  switch (static_cast<int>(code)) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "unknown result code";
  }
}
NCCL_ENTRY(const char*, ncclGetLastError, (ncclComm_t)) { return ""; }
