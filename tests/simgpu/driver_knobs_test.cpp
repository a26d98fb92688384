#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

TEST(DriverKnobs, TheNthCallFails) {
  const ChildEnd end = run_child({{"SIMGPU_ERROR", "cuMemAlloc:2:2,cuLaunchKernel:1:719"}}, [] {
    const Loaded loaded;
    CUdeviceptr device = 0;
    EXPECT_EQ(cuMemAlloc(&device, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&device, 4), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc(&device, 4), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
  });
  EXPECT_EQ(end.lines("alloc").size(), 2u);
  ASSERT_EQ(end.lines("call", "cuMemAlloc").size(), 1u);
  EXPECT_EQ(end.lines("call", "cuMemAlloc")[0]["result"], 2);
  EXPECT_EQ(end.lines("call", "cuMemAlloc")[0]["variant"], "cuMemAlloc_v2");
}

TEST(DriverKnobs, AbortHangAndErrno) {
  const ChildEnd aborted = run_child(
      {{"SIMGPU_ABORT_AT", "cuCtxSynchronize:2"}},
      [] {
        const Loaded loaded;
        cuCtxSynchronize();
        cuCtxSynchronize();
      },
      false);
  EXPECT_TRUE(WIFSIGNALED(aborted.status));
  EXPECT_EQ(WTERMSIG(aborted.status), SIGABRT);
  run_child({{"SIMGPU_HANG", "cuCtxSynchronize:1:30"}, {"SIMGPU_ERRNO", "cuMemFree:1:77"}}, [] {
    const Loaded loaded;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
    errno = 0;
    EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
    EXPECT_EQ(errno, 77);
  });
}

TEST(DriverKnobs, CallTimeIsBurnt) {
  const ChildEnd end = run_child({{"SIMGPU_CALL_TIME", "300us"}, {"SIMGPU_TRUTH_CALLS", "1"}}, [] {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  });
  ASSERT_EQ(end.truth.size(), 2u);
  for (const Json& line : end.truth) {
    EXPECT_EQ(line["op"], "call");
    EXPECT_GE(line["call_end_ns"].get<uint64_t>() - line["call_begin_ns"].get<uint64_t>(), 300'000u);
  }
}

TEST(DriverTruth, EveryLineIsWholeAndNumbered) {
  const ChildEnd end = run_child({{"SIMGPU_TRUTH_CALLS", "1"}, {"SIMGPU_KERNEL_TIME", ".=1us"}}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    std::vector<std::thread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        EXPECT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
        for (int i = 0; i < 100; ++i) EXPECT_EQ(launch(plain, 1, 32, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::set<uint64_t> numbers;
  for (const Json& line : end.truth) {
    numbers.insert(line["seq"].get<uint64_t>());
    EXPECT_LE(line["call_begin_ns"].get<uint64_t>(), line["call_end_ns"].get<uint64_t>());
    for (const char* key : {"op", "pid", "tid", "call", "variant", "result"}) EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(end.lines("kernel").size(), 800u);
  EXPECT_EQ(numbers.size(), end.truth.size());
  EXPECT_EQ(*numbers.begin(), 1u);
  EXPECT_EQ(*numbers.rbegin(), end.truth.size());
}

TEST(DriverRobustness, NoArgumentMakesItCrash) {
  run_child({}, [] {
    const Loaded loaded;
    for (const uintptr_t bits :
         {uintptr_t{0}, uintptr_t{3}, uintptr_t{0xdeadbeef}, ~uintptr_t{0}, uintptr_t{0x7fff00000000}}) {
      const auto bad = reinterpret_cast<void*>(bits);
      float milliseconds = 0;
      int value = 0;
      EXPECT_NE(cuStreamDestroy(static_cast<CUstream>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuEventRecord(static_cast<CUevent>(bad), nullptr), CUDA_SUCCESS);
      EXPECT_NE(cuEventElapsedTime(&milliseconds, static_cast<CUevent>(bad), static_cast<CUevent>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, static_cast<CUfunction>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuModuleUnload(static_cast<CUmodule>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuLibraryUnload(static_cast<CUlibrary>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuCtxPushCurrent(static_cast<CUcontext>(bad)), CUDA_SUCCESS);
      EXPECT_NE(cuMemsetD8(bits, 0, 16), CUDA_SUCCESS);
      EXPECT_NE(cuMemcpyDtoD(bits, bits, 16), CUDA_SUCCESS);
      if (bits != 0) {
        EXPECT_NE(cuMemFree(bits), CUDA_SUCCESS);
      }
      EXPECT_NE(cuTexObjectDestroy(bits), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxGetCurrent(nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuStreamCreate(nullptr, 77), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernelEx(nullptr, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchHostFunc(nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    const CUuuid id{};
    const void* table = &id;
    EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(table, nullptr);
  });
}

}  // namespace
}  // namespace simgpu
