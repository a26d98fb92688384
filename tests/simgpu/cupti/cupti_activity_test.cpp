// Activity records against the truth: every kind, to the nanosecond.
#include "tests/simgpu/cupti/cupti_fixture.h"
#include "trace/key_calls.h"

namespace simgpu {
namespace {

TEST(CuptiActivity, KernelRecordsAreTheTruth) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    const CUfunction function = loaded.function("shared_user");
    for (unsigned i = 0; i < 50; ++i)
      ASSERT_EQ(launch(function, 1 + i, 64, i % 2 ? stream : nullptr, 128), CUDA_SUCCESS);
    finish_client();
    const std::vector<CUpti_ActivityKernel10> records = client().kernels();
    auto truth = by_correlation(truth_so_far("kernel"));
    ASSERT_EQ(records.size(), 50u);
    ASSERT_EQ(truth.size(), 50u);
    for (const CUpti_ActivityKernel10& r : records) {
      ASSERT_TRUE(truth.count(r.correlationId)) << r.correlationId;
      const Json& t = truth[r.correlationId];
      EXPECT_EQ(r.start, t["start_ns"].get<uint64_t>());
      EXPECT_EQ(r.end, t["end_ns"].get<uint64_t>());
      EXPECT_EQ(r.completed, r.end);
      EXPECT_EQ(std::string(r.name), t["symbol"].get<std::string>());
      EXPECT_EQ(r.streamId, t["stream"].get<uint32_t>());
      EXPECT_EQ(r.contextId, t["context"].get<uint32_t>());
      EXPECT_EQ(r.deviceId, t["device"].get<uint32_t>());
      EXPECT_EQ(r.gridX, t["grid"][0].get<int>());
      EXPECT_EQ(r.blockX, 64);
      EXPECT_EQ(r.staticSharedMemory, t["static_shared_bytes"].get<int>());
      EXPECT_EQ(r.dynamicSharedMemory, 128);
      EXPECT_EQ(r.queued, 0u);
      EXPECT_EQ(r.graphId, 0u);
    }
    uint32_t id = 0;
    EXPECT_EQ(cuptiGetStreamIdEx(loaded.context, stream, 0, &id), CUPTI_SUCCESS);
    EXPECT_TRUE(std::any_of(records.begin(), records.end(), [&](const auto& r) { return r.streamId == id; }));
    EXPECT_EQ(cuptiGetContextId(loaded.context, &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, records[0].contextId);
    EXPECT_EQ(client().broken_buffers, 0);
  });
}

TEST(CuptiActivity, CopiesAndMemsetsAreTheTruth) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
    Loaded loaded;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    void* pinned = nullptr;
    std::vector<char> host(1 << 16);
    ASSERT_EQ(cuMemAlloc(&a, 1 << 16), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&b, 1 << 16), CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostAlloc(&pinned, 1 << 16, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoD(a, host.data(), 1 << 16), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoDAsync(a, pinned, 1 << 15, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoD(b, a, 1 << 14), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoH(pinned, b, 1 << 13), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(b, 7, 1 << 10, nullptr), CUDA_SUCCESS);
    finish_client();
    const auto copies = client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    auto truth = by_correlation(truth_so_far("copy"));
    ASSERT_EQ(copies.size(), 4u);
    const std::map<std::string, int> kinds = {{"HtoD", CUPTI_ACTIVITY_MEMCPY_KIND_HTOD},
                                              {"DtoH", CUPTI_ACTIVITY_MEMCPY_KIND_DTOH},
                                              {"DtoD", CUPTI_ACTIVITY_MEMCPY_KIND_DTOD}};
    for (const CUpti_ActivityMemcpy6& r : copies) {
      const Json& t = truth[r.correlationId];
      EXPECT_EQ(r.start, t["start_ns"].get<uint64_t>());
      EXPECT_EQ(r.end, t["end_ns"].get<uint64_t>());
      EXPECT_EQ(r.bytes, t["bytes"].get<uint64_t>());
      EXPECT_EQ(r.copyKind, kinds.at(t["kind"].get<std::string>()));
      EXPECT_EQ(r.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, t["async"].get<int>());
      const bool pageable = r.srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
      EXPECT_EQ(pageable, t["memory"] == "pageable");
    }
    const auto memsets = client().of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
    const Json t = truth_so_far("memset").at(0);
    ASSERT_EQ(memsets.size(), 1u);
    EXPECT_EQ(memsets[0].start, t["start_ns"].get<uint64_t>());
    EXPECT_EQ(memsets[0].end, t["end_ns"].get<uint64_t>());
    EXPECT_EQ(memsets[0].bytes, 4096u);
    EXPECT_EQ(memsets[0].value, 7u);
    EXPECT_EQ(memsets[0].correlationId, t["correlation"].get<uint32_t>());
  });
}

// The table that the collector and the analyzer share, against the toolkit's header. A call beyond the header's end is newer.
TEST(CuptiActivity, KeyCallsBearTheNumbersOfTheHeader) {
  run_child({}, [] {
    uint32_t known = 0;
    for (const gputrace::KeyCall& call : gputrace::kKeyCalls) {
      if (call.callback >= CUPTI_DRIVER_TRACE_CBID_SIZE) continue;
      if (CUPTI_API_VERSION < 130000 && std::strcmp(call.name, "cuda248") == 0) continue;  // renamed since
      const char* name = "";
      EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, call.callback, &name), CUPTI_SUCCESS) << call.name;
      EXPECT_STREQ(name, call.name);
      ++known;
    }
    EXPECT_GT(known, 110u);
  });
}

TEST(CuptiActivity, SingleDriverCallsByNumber) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
    Loaded loaded;
    const CUfunction function = loaded.function("plain");
    for (int i = 0; i < 20; ++i) ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    EXPECT_NE(launch(function, 1, 2048), CUDA_SUCCESS);
    finish_client();
    const auto calls = client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
    const auto kernels = client().kernels();
    ASSERT_EQ(calls.size(), 21u);
    ASSERT_EQ(kernels.size(), 20u);
    auto truth = by_correlation(truth_so_far("kernel"));
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(calls[i].cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
      EXPECT_EQ(calls[i].correlationId, kernels[i].correlationId);
      EXPECT_EQ(calls[i].returnValue, 0u);
      EXPECT_EQ(calls[i].threadId, static_cast<uint32_t>(gettid()));
      EXPECT_EQ(calls[i].processId, static_cast<uint32_t>(getpid()));
      const Json& t = truth[calls[i].correlationId];
      EXPECT_EQ(calls[i].start, t["call_begin_ns"].get<uint64_t>());
      EXPECT_LE(calls[i].end, t["call_end_ns"].get<uint64_t>());
    }
    EXPECT_NE(calls[20].returnValue, 0u);
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0), CUPTI_SUCCESS);
    ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    finish_client();
    EXPECT_EQ(client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER).size(), 21u);
    EXPECT_EQ(client().kernels().size(), 21u);
  });
}

}  // namespace
}  // namespace simgpu
