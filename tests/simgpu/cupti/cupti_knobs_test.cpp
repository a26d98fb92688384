// SIMGPU_CUPTI and SIMGPU_CLOCK: clocks, layouts, and CUPTI failing.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "tests/simgpu/cupti/cupti_fixture.h"

namespace simgpu {
namespace {

struct Stamped {
  int64_t truth_start, truth_end, start, end;
};

// Kernels, `count` of them and `pause` apart, as the truth and as the records have them.
std::vector<Stamped> stamped_kernels(int count, useconds_t pause) {
  start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  Loaded loaded;
  const CUfunction function = loaded.function("plain");
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    usleep(pause);
  }
  finish_client();
  auto truth = by_correlation(truth_so_far("kernel"));
  std::vector<Stamped> stamps;
  for (const auto& r : client().kernels()) {
    const Json& t = truth[r.correlationId];
    stamps.push_back({t["start_ns"].get<int64_t>(), t["end_ns"].get<int64_t>(), static_cast<int64_t>(r.start),
                      static_cast<int64_t>(r.end)});
  }
  EXPECT_EQ(stamps.size(), static_cast<size_t>(count));
  return stamps;
}

int64_t realtime_now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

int64_t monotonic_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

TEST(CuptiClock, ExactIsRealtimeByOneDifference) {
  run_child({}, [] {
    const std::vector<Stamped> stamps = stamped_kernels(50, 100);
    const int64_t difference = stamps[0].start - stamps[0].truth_start;
    for (const Stamped& s : stamps) {
      EXPECT_EQ(s.start - s.truth_start, difference);
      EXPECT_EQ(s.end - s.truth_end, difference);
    }
    EXPECT_LT(std::llabs(difference - (realtime_now() - monotonic_now())), 1'000'000);
    uint64_t now = 0;
    const int64_t before = monotonic_now() + difference;
    ASSERT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_GE(static_cast<int64_t>(now), before);
    EXPECT_LE(static_cast<int64_t>(now), monotonic_now() + difference);
  });
}

TEST(CuptiClock, SkewGrowsWithTime) {
  run_child({{"SIMGPU_CLOCK", "monotonic,skew=100000ppm"}}, [] {
    const std::vector<Stamped> stamps = stamped_kernels(20, 2000);
    for (const Stamped& s : stamps) {
      const double truth = static_cast<double>(s.truth_start - stamps[0].truth_start);
      EXPECT_NEAR(static_cast<double>(s.start - stamps[0].start), truth * 1.1, 2);
    }
    EXPECT_GT(stamps[19].truth_start - stamps[0].truth_start, 30'000'000);
  });
}

TEST(CuptiClock, StepShiftsAllThatFollows) {
  run_child({{"SIMGPU_CLOCK", "monotonic,step=1ms@20ms"}}, [] {
    int shifted = 0;
    for (const Stamped& s : stamped_kernels(20, 2500)) {
      const int64_t difference = s.start - s.truth_start;
      EXPECT_TRUE(difference == 0 || difference == 1'000'000) << difference;
      EXPECT_TRUE(shifted == 0 || difference != 0);
      shifted += difference != 0;
    }
    EXPECT_GT(shifted, 5);
    EXPECT_LT(shifted, 20);
    uint64_t now = 0;
    ASSERT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_NEAR(static_cast<double>(now) - static_cast<double>(monotonic_now()), 1e6, 3e5);
  });
}

TEST(CuptiClock, JitterIsBoundedAndTheSameEachTime) {
  std::vector<std::vector<int64_t>> runs;
  for (int run = 0; run < 2; ++run) {
    char path[] = "/tmp/simgpu-jitter-XXXXXX";
    const int file = mkstemp(path);
    run_child({{"SIMGPU_CLOCK", "monotonic,jitter=1us"}}, [&] {
      bool moved = false;
      for (const Stamped& s : stamped_kernels(50, 0)) {
        const int64_t off = s.start - s.truth_start;
        EXPECT_LE(std::llabs(off), 1000);
        EXPECT_LE(std::llabs(s.end - s.truth_end), 1000);
        EXPECT_GE(s.end, s.start);
        moved |= off != 0;
        ASSERT_EQ(write(file, &off, sizeof off), static_cast<ssize_t>(sizeof off));
      }
      EXPECT_TRUE(moved);
    });
    std::vector<int64_t> offs(50);
    EXPECT_EQ(pread(file, offs.data(), 400, 0), 400);
    runs.push_back(offs);
    close(file);
    unlink(path);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(CuptiClock, WrapStartsAgain) {
  run_child({{"SIMGPU_CLOCK", "monotonic,wrap=20ms"}}, [] {
    const std::vector<Stamped> stamps = stamped_kernels(20, 2500);
    int backwards = 0;
    for (size_t i = 1; i < stamps.size(); ++i) backwards += stamps[i].start < stamps[i - 1].start;
    EXPECT_GE(backwards, 2);
    for (const Stamped& s : stamps) EXPECT_EQ((s.truth_start - s.start) % 20'000'000, 0);
  });
}

TEST(CuptiLayout, EveryVersionWritesItsOwnSizes) {
  struct Known {
    const char* layout;
    uint32_t version;
    size_t kernel;
    size_t copy;
  };
  const Known known[] = {{"11.8", 18, sizeof(CUpti_ActivityKernel8), sizeof(CUpti_ActivityMemcpy5)},
                         {"12.0", 19, sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityMemcpy5)},
                         {"12.2", 20, sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityMemcpy5)},
                         {"12.4", 22, sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityMemcpy5)},
                         {"12.6", 24, sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityMemcpy5)},
                         {"12.8", 26, sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityMemcpy6)},
                         {"13.0", 130001, sizeof(CUpti_ActivityKernel10), sizeof(CUpti_ActivityMemcpy6)},
                         {"13.3", 130300, sizeof(CUpti_ActivityKernel10) + 24, sizeof(CUpti_ActivityMemcpy6)}};
  for (const Known& one : known) {
    SCOPED_TRACE(one.layout);
    run_child({{"SIMGPU_CUPTI", std::string("layout=") + one.layout}, {"SIMGPU_CLOCK", "monotonic"}}, [&] {
      uint32_t version = 0;
      ASSERT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
      EXPECT_EQ(version, one.version);
      start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY});
      EXPECT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1),
                version >= 23 ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED);
      Loaded loaded;
      CUdeviceptr memory = 0;
      char host[64] = "";
      ASSERT_EQ(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
        ASSERT_EQ(cuMemcpyHtoD(memory, host, 64), CUDA_SUCCESS);
      }
      finish_client();
      ASSERT_EQ(client().kernels().size(), 5u);
      auto truth = by_correlation(truth_so_far("kernel"));
      for (const auto& r : client().kernels()) {
        EXPECT_EQ(r.end, truth[r.correlationId]["end_ns"].get<uint64_t>());
        EXPECT_STREQ(r.name, "plain");
      }
      size_t kernels = 0;
      for (const auto& record : client().records) {
        CUpti_ActivityKind kind{};
        std::memcpy(&kind, record.data(), sizeof kind);
        if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
          EXPECT_EQ(record.size(), one.copy);
        }
        if (kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
        ++kernels;
        EXPECT_EQ(record.size(), (one.kernel + 7) / 8 * 8);
      }
      EXPECT_EQ(kernels, 5u);
    });
  }
}

TEST(CuptiFailures, AnyCallFailsAtItsTurn) {
  run_child({{"SIMGPU_CUPTI",
              "error=cuptiActivityEnable:2:35,error=cuptiGetTimestamp:1:999,error=cuptiActivityFlushAll:1:13"}},
            [] {
              ASSERT_EQ(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), CUPTI_SUCCESS);
              EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
              EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
              EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
              EXPECT_EQ(cuptiGetLastError(), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
              EXPECT_EQ(cuptiGetLastError(), CUPTI_SUCCESS);
              uint64_t now = 0;
              EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_ERROR_UNKNOWN);
              EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
              EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_NOT_READY);
              EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
              const char* text = nullptr;
              ASSERT_EQ(cuptiGetResultString(CUPTI_ERROR_NOT_READY, &text), CUPTI_SUCCESS);
              EXPECT_STREQ(text, "CUPTI_ERROR_NOT_READY");
            });
}

TEST(CuptiFailures, BusyRefusesWhateverNeedsTheSlot) {
  run_child({{"SIMGPU_CUPTI", "busy"}}, [] {
    Loaded loaded;
    CUpti_SubscriberHandle subscriber = nullptr;
    constexpr auto kTaken = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), kTaken);
    char holder[64] = "";
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = sizeof holder;
    EXPECT_EQ(cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &params), kTaken);
    EXPECT_NE(std::string(holder).find("simgpu"), std::string::npos);
    EXPECT_EQ(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), kTaken);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), kTaken);
    uint64_t now = 0;
    EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
  });
}

TEST(CuptiFailures, OffAnswersNothing) {
  run_child({{"SIMGPU_CUPTI", "off"}}, [] {
    Loaded loaded;
    uint32_t version = 0;
    EXPECT_EQ(cuptiGetVersion(&version), CUPTI_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), CUPTI_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_ERROR_NOT_INITIALIZED);
  });
}

TEST(CuptiFailures, KindsThatAreNoneOrNotModelled) {
  char missing[] = "/tmp/simgpu-missing-XXXXXX";
  ASSERT_GE(close(mkstemp(missing)), 0);
  run_child({{"SIMGPU_MISSING", missing}}, [] {
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT), CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityConfigurePCSampling(nullptr, nullptr), CUPTI_ERROR_NOT_SUPPORTED);
  });
  std::ifstream file(missing);
  std::string all(std::istreambuf_iterator<char>(file), {});
  unlink(missing);
  EXPECT_NE(all.find(" 1 cuptiActivityEnable libcupti.so.13\n"), std::string::npos) << all;
  EXPECT_NE(all.find(" 1 cuptiActivityEnableHWTrace libcupti.so.13\n"), std::string::npos) << all;
}

TEST(CuptiFailures, ForkedChildHasNoCupti) {
  run_child({}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    const pid_t child = fork();
    if (child == 0) {
      const bool refused = cuptiActivityFlushAll(0) == CUPTI_ERROR_NOT_INITIALIZED &&
                           cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_ERROR_NOT_INITIALIZED;
      _exit(refused ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    finish_client();
    EXPECT_EQ(client().count(), 1u);
  });
}

TEST(CuptiLatency, QueuedAndSubmittedOnlyBeforeTheFirstContext) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}}, [] {
    ASSERT_EQ(cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
    const std::vector<Stamped> stamps = stamped_kernels(5, 0);
    auto truth = by_correlation(truth_so_far("kernel"));
    for (const auto& r : client().kernels()) {
      const Json& t = truth[r.correlationId];
      EXPECT_GE(r.queued, t["call_begin_ns"].get<uint64_t>());
      EXPECT_LE(r.queued, r.submitted);
      EXPECT_LE(r.submitted, r.start);
    }
  });
  run_child({}, [] {
    Loaded loaded;
    EXPECT_NE(cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
  });
}

}  // namespace
}  // namespace simgpu
