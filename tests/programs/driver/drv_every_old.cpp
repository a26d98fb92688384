#include <dlfcn.h>

#include <cstdio>

#include "tests/programs/driver/drv_every.h"

// Part of drv_every: a context must be current.

namespace {

OldCounts counts{};

template <typename... Args>
CUresult old(const char* name, Args... args) {
  auto* const function = reinterpret_cast<CUresult (*)(Args...)>(dlsym(RTLD_DEFAULT, name));
  const CUresult result = function != nullptr ? function(args...) : CUDA_ERROR_NOT_FOUND;
  ++counts.calls;
  counts.failures += result == CUDA_SUCCESS ? 0 : 1;
  std::printf("%s %d\n", name, static_cast<int>(result));
  return result;
}

}  // namespace

OldCounts old_versions() {
  static char page[4096];
  CUcontext context = nullptr;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  float milliseconds = 0;
  old("cuCtxCreate_v2", &context, 0u, 0);
  old("cuCtxDestroy", context);
  old("cuDevicePrimaryCtxRetain", &context, 0);
  old("cuDevicePrimaryCtxRelease", 0);
  old("cuMemHostRegister", static_cast<void*>(page), sizeof page, 0u);
  old("cuMemHostUnregister", static_cast<void*>(page));
  old("cuStreamCreate", &stream, 0u);
  old("cuEventCreate", &event, 0u);
  old("cuEventRecord", event, stream);
  old("cuStreamSynchronize", stream);
  old("cuEventElapsedTime", &milliseconds, event, event);
  old("cuEventDestroy", event);
  old("cuStreamBeginCapture_v2", stream, 2);  // relaxed
  old("cuStreamEndCapture", stream, &graph);
  old("cuGraphDestroy", graph);
  old("cuStreamDestroy", stream);
  old("cuMemAlloc_v2", &memory, std::size_t{256});
  old("cuMemsetD8_v2_ptds", memory, 1, std::size_t{256});
  old("cuMemcpyDtoH_v2_ptds", static_cast<void*>(page), memory, std::size_t{256});
  old("cuMemFree_v2", memory);
  return counts;
}
