// Buffers, flushes and what is lost.
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/simgpu/cupti/cupti_fixture.h"

namespace simgpu {
namespace {

void launch_many(const CUfunction function, int count, CUstream stream = nullptr) {
  for (int i = 0; i < count; ++i) ASSERT_EQ(launch(function, 1, 32, stream), CUDA_SUCCESS);
}

size_t dropped() {
  size_t count = 0;
  EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &count), CUPTI_SUCCESS);
  return count;
}

TEST(CuptiBuffers, ABufferWithAnUnfinishedKernelIsWithheld) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_KERNEL_TIME", "plain=300ms,touch=1us"}}, [] {
    client().buffer_bytes = sizeof(CUpti_ActivityKernel10) * 2;
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    CUstream other = nullptr;
    ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    launch_many(loaded.function("bounded"), 4, other);
    ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(client().kernels().size(), 3u);  // what has ended, but for the one that lies beside it
    for (const auto& kernel : client().kernels()) EXPECT_STREQ(kernel.name, "bounded");
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(client().kernels().size(), 5u);
    EXPECT_STREQ(client().kernels()[3].name, "plain");
    EXPECT_STREQ(client().kernels()[4].name, "bounded");
  });
}

TEST(CuptiBuffers, EachThreadHasItsOwnUnlessTheClientWantsOne) {
  for (const bool each : {true, false}) {
    run_child({}, [each] {
      uint8_t value = 2;
      size_t size = sizeof value;
      ASSERT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value),
                CUPTI_SUCCESS);
      EXPECT_EQ(value, 1);
      value = each ? 1 : 0;
      ASSERT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value),
                CUPTI_SUCCESS);
      start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
      Loaded loaded;
      std::vector<std::thread> threads;
      threads.reserve(40);
      for (int t = 0; t < 40; ++t) {
        threads.emplace_back([&] {
          ASSERT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
          launch_many(loaded.function("plain"), 3);
        });
      }
      for (std::thread& thread : threads) thread.join();
      finish_client();
      EXPECT_EQ(client().kernels().size(), 120u);
      EXPECT_EQ(client().requested, each ? 41 : 1);  // and the one of the thread that enabled
    });
  }
}

TEST(CuptiBuffers, TheProgramsOwnThreadIsAskedForABuffer) {
  run_child({}, [] {
    static std::atomic<pthread_t> asked{};
    const auto give = [](uint8_t** buffer, size_t* size, size_t* most) {
      asked = pthread_self();
      give_buffer(buffer, size, most);
    };
    ASSERT_EQ(cuptiActivityRegisterCallbacks(give, take_buffer), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    Loaded loaded;
    std::thread thread([&] {
      ASSERT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
      launch_many(loaded.function("plain"), 1);
      EXPECT_TRUE(pthread_equal(asked, pthread_self()));
    });
    thread.join();
    finish_client();
    EXPECT_EQ(client().kernels().size(), 1u);
  });
}

TEST(CuptiBuffers, ForcedFlushGivesTheUnfinishedWithoutEnd) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_KERNEL_TIME", "plain=300ms"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 2);
    usleep(20'000);
    ASSERT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
    const auto kernels = client().kernels();
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_NE(kernels[0].start, 0u);
    EXPECT_EQ(kernels[0].end, 0u);
    EXPECT_EQ(kernels[1].start, 0u);
    EXPECT_EQ(kernels[1].end, 0u);
    finish_client();
    EXPECT_EQ(client().kernels().size(), 2u);
    EXPECT_EQ(client().requested, client().completed);
  });
}

TEST(CuptiBuffers, SmallBuffersComeBackFullFromAnotherThread) {
  run_child({}, [] {
    client().buffer_bytes = sizeof(CUpti_ActivityKernel10) * 3 + 40;
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 100);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (int i = 0; i < 500 && client().completed < 33; ++i) usleep(10'000);
    EXPECT_EQ(client().completed, 33);  // the 34th holds one record and is not full
    EXPECT_EQ(client().kernels().size(), 99u);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(client().kernels().size(), 100u);
    EXPECT_EQ(client().completed, 34);
    EXPECT_EQ(client().valid_sizes[0], sizeof(CUpti_ActivityKernel10) * 3);
    EXPECT_EQ(dropped(), 0u);
  });
}

TEST(CuptiBuffers, MostRecordsOfABuffer) {
  run_child({}, [] {
    client().most_records = 7;
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 20);
    finish_client();
    ASSERT_EQ(client().valid_sizes.size(), 3u);
    EXPECT_EQ(client().valid_sizes[0], sizeof(CUpti_ActivityKernel10) * 7);
    EXPECT_EQ(client().valid_sizes[2], sizeof(CUpti_ActivityKernel10) * 6);
  });
}

TEST(CuptiBuffers, RefusedAndTooSmallBuffersLoseAndCount) {
  run_child({}, [] {
    client().refuses = true;
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 10);
    finish_client();
    EXPECT_EQ(client().count(), 0u);
    EXPECT_EQ(dropped(), 10u);
    EXPECT_EQ(dropped(), 0u);  // asked for, so counted anew
    client().refuses = false;
    client().buffer_bytes = 64;
    launch_many(loaded.function("plain"), 5);
    finish_client();
    EXPECT_EQ(client().count(), 0u);
    EXPECT_EQ(dropped(), 5u);
    client().buffer_bytes = 1 << 16;
    launch_many(loaded.function("plain"), 4);
    finish_client();
    EXPECT_EQ(client().count(), 4u);
    EXPECT_EQ(client().requested - 11, client().completed);  // refused: one when the kind was enabled, ten for records
  });
}

TEST(CuptiBuffers, EveryNthRecordIsLost) {
  run_child({{"SIMGPU_CUPTI", "drop=10"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 105);
    finish_client();
    EXPECT_EQ(client().count(), 95u);
    EXPECT_EQ(dropped(), 10u);
  });
}

TEST(CuptiBuffers, EveryNthRecordHasNoTime) {
  run_child({{"SIMGPU_CUPTI", "zero=4"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    launch_many(loaded.function("plain"), 40);
    finish_client();
    int zero = 0;
    for (const auto& r : client().kernels()) {
      EXPECT_EQ(r.start == 0, r.end == 0);
      zero += r.start == 0;
    }
    EXPECT_EQ(zero, 10);
    EXPECT_EQ(dropped(), 0u);
  });
}

TEST(CuptiBuffers, LateRecordsComeAtAFlushAndOutOfOrder) {
  run_child({{"SIMGPU_CUPTI", "late"}, {"SIMGPU_CLOCK", "monotonic"}}, [] {
    client().buffer_bytes = sizeof(CUpti_ActivityKernel10) * 2;
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    CUstream streams[2];
    for (CUstream& stream : streams) ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int i = 0; i < 10; ++i) launch_many(loaded.function("plain"), 1, streams[i % 2]);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    usleep(100'000);
    EXPECT_EQ(client().count(), 0u);
    finish_client();
    const auto kernels = client().kernels();
    ASSERT_EQ(kernels.size(), 10u);
    int backwards = 0;
    for (size_t i = 1; i < kernels.size(); ++i) backwards += kernels[i].start < kernels[i - 1].start;
    EXPECT_EQ(backwards, 1);
    EXPECT_GT(kernels[0].streamId, kernels[9].streamId);
  });
}

TEST(CuptiBuffers, SecondRegistrationReplacesTheFirst) {
  run_child({}, [] {
    static std::atomic<int> taken{0};
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    const auto other = [](CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
      taken += static_cast<int>(valid / sizeof(CUpti_ActivityKernel10));
      std::free(buffer);
    };
    ASSERT_EQ(cuptiActivityRegisterCallbacks(give_buffer, other), CUPTI_SUCCESS);
    launch_many(loaded.function("plain"), 10);
    finish_client();
    EXPECT_EQ(client().count(), 0u);
    EXPECT_EQ(taken, 10);
  });
}

TEST(CuptiBuffers, FlushWithoutCallbacksAndFromWithinOne) {
  run_child({}, [] {
    Loaded loaded;
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    static CUptiResult inner = CUPTI_SUCCESS;
    static size_t lost = 7;
    const auto flushes = [](CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
      inner = cuptiActivityFlushAll(0);
      cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost);  // must not wait for anything
      std::free(buffer);
    };
    ASSERT_EQ(cuptiActivityRegisterCallbacks(give_buffer, flushes), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    launch_many(loaded.function("plain"), 1);
    finish_client();
    EXPECT_EQ(inner, CUPTI_ERROR_INVALID_OPERATION);
    EXPECT_EQ(lost, 0u);
  });
}

TEST(CuptiBuffers, HundredThousandKernelsFromFourThreads) {
  run_child({{"SIMGPU_KERNEL_TIME", ".=0ns"}, {"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_TRUTH", ""}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityFlushPeriod(5), CUPTI_SUCCESS);
    Loaded loaded;
    const CUfunction function = loaded.function("plain");
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        ASSERT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
        CUstream stream = nullptr;
        ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        launch_many(function, 25'000, stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
    finish_client();
    std::map<uint32_t, uint64_t> last;  // by stream
    std::vector<char> seen(200'000);
    const auto kernels = client().kernels();
    ASSERT_EQ(kernels.size(), 100'000u);
    for (const auto& r : kernels) {
      ASSERT_LT(r.correlationId, seen.size());
      EXPECT_EQ(seen[r.correlationId]++, 0);
      EXPECT_GE(r.start, last[r.streamId]);
      last[r.streamId] = r.end;
    }
    EXPECT_EQ(last.size(), 4u);
    for (const auto& call : client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER)) seen[call.correlationId] += 2;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 3), 100'000);
    EXPECT_EQ(dropped(), 0u);
  });
}

TEST(CuptiBuffers, DeviceBuffersAreEmptiedWhenFull) {
  run_child({{"SIMGPU_CUPTI", "buffer=1K"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_OVERHEAD});
    size_t size = sizeof(size_t);
    size_t bytes = 0;
    ASSERT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes), CUPTI_SUCCESS);
    EXPECT_EQ(bytes, 1024u);
    Loaded loaded;
    launch_many(loaded.function("plain"), 128);
    usleep(1000);
    finish_client();
    const auto flushes = client().of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
    ASSERT_EQ(flushes.size(), 4u);  // 32 bytes for each
    EXPECT_EQ(flushes[0].overheadKind, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
    EXPECT_EQ(flushes[0].end - flushes[0].start, 20'000u);
  });
}

TEST(CuptiBuffers, OffAgainNothingIsSeen) {
  run_child({}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER});
    Loaded loaded;
    launch_many(loaded.function("plain"), 3);
    ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_SUCCESS);
    finish_client();
    const size_t before = client().count();
    launch_many(loaded.function("plain"), 3);
    finish_client();
    EXPECT_EQ(client().count(), before);
    EXPECT_EQ(client().kernels().size(), 3u);
  });
}

}  // namespace
}  // namespace simgpu
