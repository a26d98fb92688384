// drv_errno [exit=E]: sets errno to 77 before each call and prints what it is afterwards, so that a tracer's own use of
// errno shows; with SIMGPU_ERRNO=CALL:N:ERRNO the driver leaves that one after its N-th call, and it must arrive.
#include <cerrno>

#include "tests/programs/drv_calls.h"

template <typename Function, typename... Args>
static void report(const char* name, Function function, Args... args) {
  errno = 77;
  const CUresult result = function(args...);
  const int after = errno;
  std::printf("%s %d errno %d\n", name, static_cast<int>(result), after);
}

#define REPORT(name, ...) report(#name, calls.name##_ __VA_OPT__(, ) __VA_ARGS__)

int main(int argc, char** argv) {
  const Calls calls = linked_calls();
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  char bytes[64] = {};
  REPORT(cuInit, 0u);
  REPORT(cuDeviceGet, &device, 0);
  REPORT(cuDevicePrimaryCtxRetain, &context, device);
  REPORT(cuCtxSetCurrent, context);
  REPORT(cuModuleLoadData, &module, ptx_text);
  REPORT(cuModuleGetFunction, &function, module, "third");
  REPORT(cuStreamCreate, &stream, 0u);
  REPORT(cuEventCreate, &event, 0u);
  REPORT(cuMemAlloc, &memory, sizeof bytes);
  REPORT(cuMemcpyHtoD, memory, bytes, sizeof bytes);
  for (int round = 0; round < 3; ++round) {
    REPORT(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, nullptr, nullptr);
  }
  REPORT(cuLaunchKernel, function, 1u, 1u, 1u, 4096u, 1u, 1u, 0u, stream, nullptr, nullptr);  // fails
  REPORT(cuMemsetD8, memory, static_cast<unsigned char>(1), sizeof bytes);
  REPORT(cuEventRecord, event, stream);
  REPORT(cuStreamSynchronize, stream);
  REPORT(cuCtxSynchronize);
  REPORT(cuMemcpyDtoH, bytes, memory, sizeof bytes);
  REPORT(cuMemFree, memory);
  REPORT(cuMemFree, memory);  // fails
  REPORT(cuEventDestroy, event);
  REPORT(cuStreamDestroy, stream);
  REPORT(cuModuleUnload, module);
  REPORT(cuDevicePrimaryCtxRelease, device);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
