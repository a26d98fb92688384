// The driver's own entry points, through which the library asks for facts. Looked up in libcuda itself, never through our
// wrappers; null where the driver does not have them. Only called after a call of the application's own has succeeded.
#pragma once

#include <type_traits>

#include "interpose/cuda_api.h"

// The header has all of its versions but this one.
extern "C" std::remove_pointer_t<PFN_cuStreamGetCaptureInfo_v12030_ptsz> cuStreamGetCaptureInfo_v3_ptsz;

namespace gputrace {

// clang-format off
#define GT_QUERIES(X) \
  X(cuCtxGetCurrent) \
  X(cuCtxGetDevice) \
  X(cuDriverGetVersion) \
  X(cuDeviceGetCount) \
  X(cuDeviceGetName) \
  X(cuDeviceGetUuid) \
  X(cuDeviceTotalMem_v2) \
  X(cuDeviceGetAttribute) \
  X(cuDevicePrimaryCtxGetState) \
  X(cuFuncGetAttribute) \
  X(cuKernelGetAttribute) \
  X(cuFuncGetName) \
  X(cuKernelGetName) \
  X(cuFuncGetModule) \
  X(cuStreamIsCapturing) \
  X(cuStreamIsCapturing_ptsz) \
  X(cuStreamGetCaptureInfo_v2) \
  X(cuStreamGetCaptureInfo_v2_ptsz) \
  X(cuStreamGetCaptureInfo_v3) \
  X(cuStreamGetCaptureInfo_v3_ptsz) \
  X(cuGraphGetNodes) \
  X(cuGraphNodeGetType) \
  X(cuGraphKernelNodeGetParams) \
  X(cuGraphKernelNodeGetParams_v2) \
  X(cuGraphMemcpyNodeGetParams) \
  X(cuGraphMemsetNodeGetParams) \
  X(cuGraphMemAllocNodeGetParams) \
  X(cuGraphMemFreeNodeGetParams) \
  X(cuGraphChildGraphNodeGetGraph) \
  X(cuModuleGetFunctionCount) \
  X(cuLibraryGetKernelCount)
// clang-format on

struct DriverQuery {
#define GT_QUERY(name) decltype(&::name) name;
  GT_QUERIES(GT_QUERY)
#undef GT_QUERY
};

// Looked up at the first use; any thread. Cold.
const DriverQuery& driver_query();

}  // namespace gputrace
