// A driver that does nothing and does it at once: what is left when its cost is taken away from a traced call is the hook.
// It has what bench/calls.cpp calls and what the library asks a driver for facts with; every call succeeds.
#include <cuda.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define NOTHING(name, ...) \
  API CUresult name(__VA_ARGS__) { return CUDA_SUCCESS; }
#pragma GCC diagnostic ignored "-Wunused-parameter"

static char context, module, functions[256];

API CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
API CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
API CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
API CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) { return *value = 1, CUDA_SUCCESS; }
API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) { return *bytes = 1ul << 34, CUDA_SUCCESS; }
API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return strncpy(name, "no-op", (size_t)length), CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return memset(uuid, 1, sizeof *uuid), CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) { return *c = (CUcontext)&context, CUDA_SUCCESS; }
API CUresult cuCtxGetCurrent(CUcontext* c) { return *c = (CUcontext)&context, CUDA_SUCCESS; }
API CUresult cuCtxGetDevice(CUdevice* d) { return *d = 0, CUDA_SUCCESS; }
NOTHING(cuCtxSetCurrent, CUcontext c)
NOTHING(cuCtxSynchronize, void)
API CUresult cuModuleLoadData(CUmodule* m, const void* image) { return *m = (CUmodule)&module, CUDA_SUCCESS; }
// One handle per last two digits of the name.
API CUresult cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
  size_t n = strlen(name);
  unsigned at = n >= 2 ? (unsigned)(name[n - 2] - '0') * 10u + (unsigned)(name[n - 1] - '0') : 0;
  return *f = (CUfunction)&functions[at % sizeof functions], CUDA_SUCCESS;
}
API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction f) { return *value = 32, CUDA_SUCCESS; }
API CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* status) {
  return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
API CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) { return *p = 0x700000000, CUDA_SUCCESS; }
NOTHING(cuMemFree_v2, CUdeviceptr p)
NOTHING(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void* from, size_t bytes, CUstream s)
NOTHING(cuMemsetD8Async, CUdeviceptr to, unsigned char value, size_t n, CUstream s)
NOTHING(cuEventRecord, CUevent e, CUstream s)
NOTHING(cuStreamSynchronize, CUstream s)
NOTHING(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
        CUstream s, void** arguments, void** extra)
