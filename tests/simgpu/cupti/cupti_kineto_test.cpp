// What PyTorch's profiler (Kineto) does with CUPTI, without PyTorch: a clock of its own, windows of collection opened and closed any number of
// times, finalization, its operators' numbers on the calls below them.
#include <cuda_runtime_api.h>
#include <cstring>

#include <cmath>
#include <set>

#include "tests/simgpu/cupti/cupti_fixture.h"

namespace simgpu {
namespace {

// Kineto's clock is the TSC. This one too runs at a rate of its own, from a beginning of its own, and can be turned back.
constexpr double kTicksPerNano = 2.6;
constexpr uint64_t kFirstTick = 1ull << 50;
uint64_t first_nano = 0;

uint64_t monotonic() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t CUPTIAPI ticks() {
  return kFirstTick + static_cast<uint64_t>(static_cast<double>(monotonic() - first_nano) * kTicksPerNano);
}

double nanos_of(uint64_t tick) {
  return static_cast<double>(first_nano) +
         (static_cast<double>(tick) - static_cast<double>(kFirstTick)) / kTicksPerNano;
}

constexpr double kBufferRequest = 50'000;  // ns; to allocate and touch one
constexpr double kOff = 2000;              // ns; what a reading of two clocks may be apart on a busy machine

void CUPTIAPI hear_kineto(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

const std::vector<CUpti_ActivityKind> kKinetos = {CUPTI_ACTIVITY_KIND_MEMCPY,
                                                  CUPTI_ACTIVITY_KIND_MEMSET,
                                                  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                  CUPTI_ACTIVITY_KIND_RUNTIME,
                                                  CUPTI_ACTIVITY_KIND_OVERHEAD};

struct Window {
  CUpti_SubscriberHandle subscriber = nullptr;

  void open() {
    first_nano = first_nano != 0 ? first_nano : monotonic();
    ASSERT_EQ(cuptiSubscribe(&subscriber, hear_kineto, nullptr), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback(ticks), CUPTI_SUCCESS);
    start_client(kKinetos);
    for (const CUpti_CallbackId call :
         {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx})
      ASSERT_EQ(cuptiActivityEnableDriverApi(call, 1), CUPTI_SUCCESS);
  }
  void close(bool finalize) {
    cuCtxSynchronize();
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    for (const CUpti_ActivityKind kind : kKinetos) ASSERT_EQ(cuptiActivityDisable(kind), CUPTI_SUCCESS) << kind;
    ASSERT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    if (!finalize) return;
    ASSERT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
  }
};

struct Work {
  Loaded loaded;
  CUdeviceptr data = 0;
  std::vector<char> host = std::vector<char>(1 << 16);

  Work() { EXPECT_EQ(cuMemAlloc(&data, host.size()), CUDA_SUCCESS); }
  void step(unsigned kernels) {
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 4711), CUPTI_SUCCESS);
    ASSERT_EQ(cudaMemcpyAsync(reinterpret_cast<void*>(data), host.data(), host.size(), cudaMemcpyDefault, nullptr),
              cudaSuccess);
    uint64_t last = 0;
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last), CUPTI_SUCCESS);
    ASSERT_EQ(last, 4711u);
    ASSERT_EQ(cudaMemsetAsync(reinterpret_cast<void*>(data), 0, host.size(), nullptr), cudaSuccess);
    for (unsigned i = 0; i < kernels; ++i) ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
  }
};

template <class Record>
void expect_truth(const std::vector<Record>& records, std::map<uint64_t, Json> truth, const char* begin,
                  const char* end) {
  EXPECT_EQ(records.size(), truth.size()) << begin;
  for (const Record& r : records) {
    ASSERT_TRUE(truth.count(r.correlationId)) << r.correlationId;
    const Json& line = truth[r.correlationId];
    const double stop = nanos_of(r.end), really = line[end].template get<double>();
    EXPECT_NEAR(nanos_of(r.start), line[begin].template get<double>(), kOff);
    // A call goes on while its thread is asked for a buffer to put the record into.
    EXPECT_LT(stop, really + kOff) << end;
    EXPECT_GT(stop, really - (std::strcmp(end, "call_end_ns") == 0 ? kBufferRequest : kOff)) << end;
  }
}

TEST(CuptiKineto, AllStampsAreTheProgramsOwnClock) {
  run_child({{"SIMGPU_CLOCK", "exact"}, {"SIMGPU_KERNEL_TIME", ".=300us"}}, [] {
    Work work;
    Window window;
    const size_t copies = truth_so_far("copy").size();
    window.open();
    EXPECT_EQ(client().requested, 1);  // at once: Kineto takes no buffer for nothing to collect
    work.step(20);
    window.close(false);
    ASSERT_EQ(copies, 0u);
    expect_truth(client().kernels(), by_correlation(truth_so_far("kernel")), "start_ns", "end_ns");
    expect_truth(client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY), by_correlation(truth_so_far("copy")),
                 "start_ns", "end_ns");
    expect_truth(client().of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET), by_correlation(truth_so_far("memset")),
                 "start_ns", "end_ns");
    expect_truth(client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER), by_correlation(truth_so_far("kernel")),
                 "call_begin_ns", "call_end_ns");
    uint64_t now = 0;
    ASSERT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_NEAR(nanos_of(now), static_cast<double>(monotonic()), 1e8);
    EXPECT_EQ(cuptiActivityRegisterTimestampCallback(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(CuptiKineto, WindowsOpenAndCloseAnyNumberOfTimes) {
  for (const bool finalize : {false, true}) {
    run_child({}, [finalize] {
      Work work;
      std::set<uint64_t> seen;
      for (unsigned turn = 0; turn < 8; ++turn) {
        work.step(3);  // nobody looks
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        const size_t before = truth_so_far("kernel").size();
        Window window;
        window.open();
        work.step(turn);
        window.close(finalize);
        const auto kernels = client().kernels();
        EXPECT_EQ(kernels.size(), turn);
        const auto truth = truth_so_far("kernel");
        ASSERT_EQ(truth.size(), before + turn);
        for (size_t i = 0; i < kernels.size(); ++i) {
          EXPECT_EQ(kernels[i].correlationId, truth[before + i]["correlation"].get<uint64_t>());
          EXPECT_TRUE(seen.insert(kernels[i].correlationId).second);
          EXPECT_NEAR(nanos_of(kernels[i].start), truth[before + i]["start_ns"].get<double>(), kOff);
        }
        const auto copies = client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
        const auto operators = client().of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        ASSERT_EQ(copies.size(), 1u);
        ASSERT_EQ(operators.size(), 1u);
        EXPECT_EQ(operators[0].externalId, 4711u);
        EXPECT_EQ(operators[0].correlationId, copies[0].correlationId);
        client().records.clear();
      }
    });
  }
}

}  // namespace
}  // namespace simgpu
