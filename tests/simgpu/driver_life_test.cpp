// When threads, programs and processes end.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

CUfunction late_function = nullptr;
CUcontext late_context = nullptr;
CUresult late_result = CUDA_ERROR_UNKNOWN;

void launch_late() {
  cuCtxSetCurrent(late_context);
  late_result = launch(late_function, 1, 32, CU_STREAM_PER_THREAD);
}

struct LaunchesAtThreadEnd {
  ~LaunchesAtThreadEnd() { launch_late(); }
};

TEST(DriverLife, ThreadExitDestructorsMayCall) {
  const ChildEnd end = run_child({}, [] {
    const Loaded loaded;
    late_function = loaded.function("plain");
    late_context = loaded.context;
    pthread_key_t key;
    ASSERT_EQ(pthread_key_create(&key, [](void*) { launch_late(); }), 0);
    for (int i = 0; i < 50; ++i) {
      std::thread([&] {
        thread_local LaunchesAtThreadEnd at_end;
        pthread_setspecific(key, &at_end);
        EXPECT_EQ(cuCtxPushCurrent(loaded.context), CUDA_SUCCESS);
        EXPECT_EQ(launch(late_function, 1, 32, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
      }).join();
      EXPECT_EQ(late_result, CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  EXPECT_EQ(end.lines("kernel").size(), 150u);
}

TEST(DriverLife, ProgramsMayEndWithWorkUnderWayAndCallInExitHandlers) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=100s"}}, [] {
    const Loaded loaded;
    late_function = loaded.function("plain");
    late_context = loaded.context;
    const CUstream stream = new_stream();
    EXPECT_EQ(launch(late_function, 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuLaunchHostFunc(
                  stream, [](void*) {}, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(std::atexit([] {
                launch_late();
                if (late_result != CUDA_SUCCESS) _exit(3);
              }),
              0);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_EQ(end.lines("kernel").size(), 2u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(DriverLife, ClosingTheLibraryDoesNotUnloadIt) {
  run_child({}, [] {
    const Loaded loaded;
    const CUstream stream = new_stream();
    EXPECT_EQ(cuLaunchHostFunc(
                  stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr),
              CUDA_SUCCESS);
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    EXPECT_EQ(dlclose(library), 0);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
}

TEST(DriverLife, LimitedProcessesHaveMemoryToo) {
  run_child({}, [] {
    const rlimit file{4096, 4096};
    const rlimit addresses{rlim_t{3} << 30, rlim_t{3} << 30};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &file), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ASSERT_EQ(setrlimit(RLIMIT_AS, &addresses), 0);
#endif
    unsetenv("SIMGPU_TRUTH");
    const Loaded loaded;
    CUdeviceptr device = 0;
    EXPECT_EQ(cuMemAlloc(&device, 8 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8(device, 1, 8 << 20), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);
  });
}

// The flags of the mapping that holds an address; "dd" is "not in a core dump".
std::string mapping_flags(CUdeviceptr address) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char permission = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &permission) == 3)
      here = begin <= address && address < end;
    if (here && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(DriverLife, DeviceMemoryAndHandlesAreNotInACoreDump) {
  run_child({}, [] {
    const Loaded loaded;
    CUdeviceptr plain = 0, pooled = 0, mapped = 0;
    EXPECT_EQ(cuMemAlloc(&plain, 8 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&pooled, 8 << 20, nullptr), CUDA_SUCCESS);
    CUmemAllocationProp props{};
    props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle memory{};
    const size_t bytes = 2 << 20;
    EXPECT_EQ(cuMemCreate(&memory, bytes, &props, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressReserve(&mapped, bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(mapped, bytes, 0, memory, 0), CUDA_SUCCESS);
    const auto handle = reinterpret_cast<CUdeviceptr>(loaded.context);
    for (const CUdeviceptr address : {plain, pooled, mapped, handle}) {
      EXPECT_NE(mapping_flags(address).find(" dd "), std::string::npos) << mapping_flags(address);
    }
    int mine = 0;
    EXPECT_EQ(mapping_flags(reinterpret_cast<CUdeviceptr>(&mine)).find(" dd "), std::string::npos);
  });
}

TEST(DriverLife, HandlesAreNotUsedAgainWhileTheyWork) {
  run_child({}, [] {
    const Loaded loaded;
    static std::atomic<int> ran{0};
    for (int i = 0; i < 200; ++i) {
      const CUstream stream = new_stream();
      CUevent event = nullptr;
      EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
      EXPECT_EQ(cuLaunchHostFunc(
                    stream, [](void*) { ++ran; }, nullptr),
                CUDA_SUCCESS);
      EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
      EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(ran, 200);
  });
}

}  // namespace
}  // namespace simgpu
