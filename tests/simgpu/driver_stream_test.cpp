#include <atomic>
#include <chrono>
#include <thread>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

TEST(DriverStream, SynchronizeWaitsForTheModelledEnd) {
  run_child({{"SIMGPU_KERNEL_TIME", ".=20ms"}}, [] {
    const Loaded loaded;
    const CUstream stream = new_stream();
    const auto begin = Clock::now();
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT_LT(milliseconds_since(begin), 15);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_GE(milliseconds_since(begin), 20);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);  // with work under way
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_GE(milliseconds_since(begin), 40);
  });
}

TEST(DriverStream, StreamsOverlapUnlessTheLegacyStreamIsBetween) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=10ms"}}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    const CUstream free_one = new_stream(CU_STREAM_NON_BLOCKING);
    const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    EXPECT_EQ(launch(plain, 1, 32, free_one), CUDA_SUCCESS);              // 0
    EXPECT_EQ(launch(plain, 2, 32, blocking), CUDA_SUCCESS);              // 1: beside 0
    EXPECT_EQ(launch(plain, 3, 32, nullptr), CUDA_SUCCESS);               // 2: after 1, beside 0
    EXPECT_EQ(launch(plain, 4, 32, blocking), CUDA_SUCCESS);              // 3: after 2
    EXPECT_EQ(launch(plain, 5, 32, CU_STREAM_PER_THREAD), CUDA_SUCCESS);  // 4: after 2, beside 3
    EXPECT_EQ(launch(plain, 6, 32, CU_STREAM_LEGACY), CUDA_SUCCESS);      // 5: after 3 and 4
    EXPECT_EQ(launch(plain, 7, 32, free_one), CUDA_SUCCESS);              // 6: after 0 only
  });
  const std::vector<Json> k = end.lines("kernel");
  ASSERT_EQ(k.size(), 7u);
  EXPECT_LT(start_of(k[1]), end_of(k[0]));
  EXPECT_EQ(start_of(k[2]), end_of(k[1]));
  EXPECT_EQ(start_of(k[3]), end_of(k[2]));
  EXPECT_EQ(start_of(k[4]), end_of(k[2]));
  EXPECT_EQ(start_of(k[5]), std::max(end_of(k[3]), end_of(k[4])));
  EXPECT_EQ(start_of(k[6]), end_of(k[0]));
  EXPECT_NE(k[4]["stream"], k[5]["stream"]);
  EXPECT_EQ(k[2]["stream"], k[5]["stream"]);
}

TEST(DriverStream, EventsCarryTimeAndOrder) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=10ms"}}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    CUevent before = nullptr, after = nullptr, untimed = nullptr;
    EXPECT_EQ(cuEventCreate(&before, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    EXPECT_EQ(cuEventCreate(&after, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    EXPECT_EQ(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(before), CUDA_SUCCESS);  // never recorded
    float elapsed = -1;
    EXPECT_EQ(cuEventElapsedTime(&elapsed, before, after), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventRecord(before, a), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32, a), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 1, 32, a), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(after, a), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(untimed, a), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventElapsedTime(&elapsed, before, after), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamWaitEvent(b, after, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(plain, 2, 32, b), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(after), CUDA_SUCCESS);
    EXPECT_EQ(cuEventElapsedTime(&elapsed, before, after), CUDA_SUCCESS);
    EXPECT_GE(elapsed, 20.0f);
    EXPECT_LT(elapsed, 21.0f);
    EXPECT_EQ(cuEventElapsedTime(&elapsed, before, untimed), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventDestroy(before), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(before, a), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventCreate(&before, 8), CUDA_ERROR_INVALID_VALUE);
  });
  const std::vector<Json> k = end.lines("kernel");
  const std::vector<Json> e = end.lines("event");
  ASSERT_EQ(k.size(), 3u);
  ASSERT_EQ(e.size(), 3u);
  EXPECT_EQ(e[1]["at_ns"].get<uint64_t>(), end_of(k[1]));
  EXPECT_EQ(start_of(k[2]), end_of(k[1]));
  EXPECT_EQ(end.lines("sync")[0]["what"], "event");
}

struct Order {
  std::atomic<int> count{0};
  int values[64] = {};
  void add(int value) { values[count.fetch_add(1)] = value; }
};
struct Step {
  Order* order;
  int value;
};

TEST(DriverStream, HostFunctionsRunInOrderAndAreWaitedFor) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=2ms"}}, [] {
    const Loaded loaded;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    static Order order;
    static Step steps[20];
    CUevent joined = nullptr;
    EXPECT_EQ(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    const auto note = [](void* data) {
      auto* step = static_cast<Step*>(data);
      int unused = 0;
      if (cuDeviceGetCount(&unused) != CUDA_ERROR_NOT_PERMITTED) step->value = -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      step->order->add(step->value);
    };
    for (int i = 0; i < 10; ++i) {
      steps[i] = {&order, i};
      EXPECT_EQ(launch(loaded.function("plain"), 1, 32, a), CUDA_SUCCESS);
      EXPECT_EQ(cuLaunchHostFunc(a, note, &steps[i]), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuEventRecord(joined, a), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(joined), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamWaitEvent(b, joined, 0), CUDA_SUCCESS);
    for (int i = 10; i < 20; ++i) {
      steps[i] = {&order, i};
      EXPECT_EQ(cuStreamAddCallback(
                    b,
                    [](CUstream, CUresult, void* data) {
                      static_cast<Step*>(data)->order->add(static_cast<Step*>(data)->value);
                    },
                    &steps[i], 0),
                CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
    EXPECT_EQ(order.count, 20);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(order.values[i], i);
    EXPECT_EQ(cuEventQuery(joined), CUDA_SUCCESS);
  });
  const std::vector<Json> k = end.lines("kernel");
  ASSERT_EQ(k.size(), 10u);
  for (size_t i = 1; i < k.size(); ++i)
    EXPECT_GE(start_of(k[i]), end_of(k[i - 1]) + 1'000'000);  // the host's millisecond
}

TEST(DriverStream, DataFollowsAHostFunctionInItsStream) {
  run_child({}, [] {
    const Loaded loaded;
    const CUstream stream = new_stream();
    int* host = nullptr;
    CUdeviceptr device = 0;
    ASSERT_EQ(cuMemAllocHost(reinterpret_cast<void**>(&host), 8), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&device, 8), CUDA_SUCCESS);
    host[0] = 1;
    EXPECT_EQ(cuLaunchHostFunc(
                  stream,
                  [](void* data) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                    static_cast<int*>(data)[0] = 42;
                  },
                  host),
              CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoDAsync(device, host, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync(host + 1, device, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(host[1], 42);
  });
}

TEST(DriverStream, LegacyStreamWaitsForHostFunctionsOfBlockingStreams) {
  run_child({}, [] {
    const Loaded loaded;
    const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    static std::atomic<bool> done{false};
    EXPECT_EQ(cuLaunchHostFunc(
                  blocking,
                  [](void*) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    done = true;
                  },
                  nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(done);
  });
}

TEST(DriverStream, ValuesInMemoryHoldStreamsBack) {
  run_child({}, [] {
    const Loaded loaded;
    const CUstream a = new_stream();
    const CUstream b = new_stream();
    uint32_t* host = nullptr;
    ASSERT_EQ(cuMemAllocHost(reinterpret_cast<void**>(&host), 64), CUDA_SUCCESS);
    host[0] = host[1] = 0;
    const auto address = reinterpret_cast<CUdeviceptr>(host);
    EXPECT_EQ(cuStreamWaitValue32(a, address, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWriteValue32(a, address + 4, 9, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, a), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(host[1], 0u);
    EXPECT_EQ(cuStreamWriteValue32(b, address, 6, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    EXPECT_EQ(host[1], 9u);
    EXPECT_EQ(cuStreamWaitValue32(a, address + 2, 5, 0), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverStream, DefaultStreamsHaveTheirOwnIds) {
  run_child({}, [] {
    const Loaded loaded;
    unsigned long long legacy = 0, mine = 0, same = 0, other = 0;
    EXPECT_EQ(cuStreamGetId(nullptr, &legacy), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &mine), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &same), CUDA_SUCCESS);
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &other), CUDA_SUCCESS);
    }).join();
    EXPECT_NE(legacy, mine);
    EXPECT_EQ(mine, same);
    EXPECT_NE(mine, other);
    CUcontext context = nullptr;
    EXPECT_EQ(cuStreamGetCtx(CU_STREAM_LEGACY, &context), CUDA_SUCCESS);
    EXPECT_EQ(context, loaded.context);
    EXPECT_EQ(cuStreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverStream, ManyThreadsOnManyStreams) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", ".=1us"}}, [] {
    const Loaded loaded;
    const CUfunction plain = loaded.function("plain");
    std::vector<std::thread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        EXPECT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
        for (int round = 0; round < 20; ++round) {
          const CUstream stream = new_stream(round % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
          CUdeviceptr memory = 0;
          EXPECT_EQ(cuMemAlloc(&memory, 1000), CUDA_SUCCESS);
          EXPECT_EQ(launch(plain, 1, 32, stream), CUDA_SUCCESS);
          EXPECT_EQ(launch(plain, 1, 32), CUDA_SUCCESS);
          EXPECT_EQ(cuLaunchHostFunc(
                        stream, [](void*) {}, nullptr),
                    CUDA_SUCCESS);
          EXPECT_EQ(cuMemsetD8Async(memory, 1, 1000, stream), CUDA_SUCCESS);
          EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
          EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  EXPECT_EQ(end.lines("kernel").size(), 320u);
  EXPECT_EQ(end.lines("memset").size(), 160u);
}

}  // namespace
}  // namespace simgpu
