#include <cstring>
#include <thread>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

TEST(DriverInit, NothingWorksBeforeInitAndErrorsHaveNames) {
  run_child({{"SIMGPU_DRIVER", "12080"}}, [] {
    int value = 0;
    EXPECT_EQ(cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuDriverGetVersion(&value), CUDA_SUCCESS);
    EXPECT_EQ(value, 12080);
    const char* name = nullptr;
    EXPECT_EQ(cuGetErrorName(CUDA_ERROR_NOT_READY, &name), CUDA_SUCCESS);
    EXPECT_STREQ(name, "CUDA_ERROR_NOT_READY");
    EXPECT_EQ(cuGetErrorString(static_cast<CUresult>(12345), &name), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(name, nullptr);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetCount(&value), CUDA_SUCCESS);
    EXPECT_EQ(value, 1);
  });
}

TEST(DriverInit, NoDevices) {
  run_child({{"SIMGPU_DEVICES", "0"}}, [] { EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE); });
}

TEST(DriverInit, TheChildOfAForkHasNoDriver) {
  run_child({}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      const bool refused =
          cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
          launch(plain, 1, 32) == CUDA_ERROR_NOT_INITIALIZED && cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(launch(plain, 1, 32), CUDA_SUCCESS);
  });
}

TEST(DriverDevice, TheMachineIsAsConfigured) {
  run_child({{"SIMGPU_DEVICES", "3"},
             {"SIMGPU_SMS", "46"},
             {"SIMGPU_CC", "8.6"},
             {"SIMGPU_MEMORY", "24G"},
             {"SIMGPU_NAME", "Toy"}},
            [] {
              ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
              const auto attribute = [](CUdevice_attribute which) {
                int value = -1;
                EXPECT_EQ(cuDeviceGetAttribute(&value, which, 2), CUDA_SUCCESS);
                return value;
              };
              char name[16];
              size_t bytes = 0;
              EXPECT_EQ(cuDeviceGetName(name, sizeof name, 2), CUDA_SUCCESS);
              EXPECT_STREQ(name, "Toy");
              EXPECT_EQ(cuDeviceTotalMem(&bytes, 2), CUDA_SUCCESS);
              EXPECT_EQ(bytes, size_t{24} << 30);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 46);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 8);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 6);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 1536);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 99 * 1024);
              EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
              for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
                int value = 0;
                EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), 0), CUDA_SUCCESS) << i;
              }
              int value = 0;
              EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 3), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
              CUuuid a, b;
              EXPECT_EQ(cuDeviceGetUuid(&a, 0), CUDA_SUCCESS);
              EXPECT_EQ(cuDeviceGetUuid(&b, 1), CUDA_SUCCESS);
              EXPECT_NE(std::memcmp(&a, &b, sizeof a), 0);
              char bus[16];
              CUdevice found = -1;
              EXPECT_EQ(cuDeviceGetPCIBusId(bus, sizeof bus, 2), CUDA_SUCCESS);
              EXPECT_EQ(cuDeviceGetByPCIBusId(&found, bus), CUDA_SUCCESS);
              EXPECT_EQ(found, 2);
              EXPECT_EQ(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_SUCCESS);
              EXPECT_EQ(value, 1);
            });
}

TEST(DriverContext, EachThreadHasAStack) {
  run_child({}, [] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext a = nullptr, b = nullptr, current = nullptr;
    CUdevice device = -1;
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_EQ(cuCtxCreate(&a, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxCreate(&b, nullptr, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, b);
    std::thread([] {
      CUcontext other = nullptr;
      EXPECT_EQ(cuCtxGetCurrent(&other), CUDA_SUCCESS);
      EXPECT_EQ(other, nullptr);
    }).join();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(cuCtxPushCurrent(a), CUDA_SUCCESS);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, a);
    EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, b);
    EXPECT_EQ(cuCtxDestroy(a), CUDA_SUCCESS);  // current here: off the stack
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxSetCurrent(a), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cuCtxDestroy(a), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cuCtxDestroy(reinterpret_cast<CUcontext>(0x1234)), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(DriverContext, PrimaryContextsCountReferences) {
  run_child({}, [] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext first = nullptr, second = nullptr;
    unsigned flags = 99;
    int active = -1;
    EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
    EXPECT_EQ(first, second);
    EXPECT_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetFlags(&flags), CUDA_SUCCESS);
    EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_BLOCKING_SYNC});
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
    EXPECT_EQ(first, second);
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, total);  // the memory went with the context
    EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverContext, LimitsAndPriorities) {
  run_child({}, [] {
    const Loaded loaded;
    size_t value = 0;
    EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
    EXPECT_EQ(value, 1024u);
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2000), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
    EXPECT_EQ(value, 2000u);
    EXPECT_EQ(cuCtxGetLimit(&value, static_cast<CUlimit>(77)), CUDA_ERROR_UNSUPPORTED_LIMIT);
    int least = 9, greatest = 9, priority = 9;
    EXPECT_EQ(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
    EXPECT_EQ(least, 0);
    EXPECT_EQ(greatest, -5);
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    EXPECT_EQ(priority, -5);
  });
}

}  // namespace
}  // namespace simgpu
