// The runtime's calls as CUPTI sees them: one number for a runtime call and the driver call inside it, and one record, or two of each.
#include <cuda_runtime_api.h>

#include "tests/simgpu/cupti/cupti_fixture.h"

namespace simgpu {
namespace {

void copy_twice() {
  void* memory = nullptr;
  char host[256] = "";
  ASSERT_EQ(cudaMalloc(&memory, sizeof host), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host, memory, sizeof host, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

std::vector<CUpti_ActivityAPI> calls_of(CUpti_ActivityKind kind, std::initializer_list<uint32_t> numbers) {
  std::vector<CUpti_ActivityAPI> found;
  for (const auto& call : client().of<CUpti_ActivityAPI>(kind)) {
    if (std::find(numbers.begin(), numbers.end(), call.cbid) != numbers.end()) found.push_back(call);
  }
  return found;
}

struct Calls {
  std::vector<CUpti_ActivityMemcpy6> copies;
  std::vector<CUpti_ActivityAPI> runtime, driver;
};

Calls copies_with(const std::vector<CUpti_ActivityKind>& kinds) {
  start_client(kinds);
  copy_twice();
  finish_client();
  return {client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY),
          calls_of(CUPTI_ACTIVITY_KIND_RUNTIME,
                   {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020}),
          calls_of(CUPTI_ACTIVITY_KIND_DRIVER,
                   {CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2})};
}

TEST(CuptiRuntime, OneRecordForARuntimeCallAndTheDriverCallInsideIt) {
  run_child(kMonotonic, [] {
    const Calls calls =
        copies_with({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
    auto truth = by_correlation(truth_so_far("copy"));
    ASSERT_EQ(calls.copies.size(), 2u);
    ASSERT_EQ(calls.runtime.size(), 2u);
    EXPECT_EQ(calls.driver.size(), 0u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(calls.copies[i].correlationId, calls.runtime[i].correlationId);
      EXPECT_EQ(truth.count(calls.copies[i].correlationId), 1u);
    }
    EXPECT_EQ(calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020}).size(), 1u);
    EXPECT_EQ(calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020}).size(), 1u);
    CUdeviceptr memory = 0;  // a driver call of the program's own has its record
    ASSERT_EQ(cuMemAlloc(&memory, 256), CUDA_SUCCESS);
    finish_client();
    EXPECT_EQ(calls_of(CUPTI_ACTIVITY_KIND_DRIVER, {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2}).size(), 1u);
  });
}

TEST(CuptiRuntime, TheDriverCallHasTheRecordWhereRuntimeCallsHaveNone) {
  run_child(kMonotonic, [] {
    const Calls calls = copies_with({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_DRIVER});
    ASSERT_EQ(calls.copies.size(), 2u);
    ASSERT_EQ(calls.driver.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(calls.copies[i].correlationId, calls.driver[i].correlationId);
  });
}

// One call alone is asked for: the runtime's around it is not shown, its number holds nevertheless.
TEST(CuptiRuntime, ADriverCallThatIsAskedForAlone) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_MEMCPY});
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, 1), CUPTI_SUCCESS);
    copy_twice();
    finish_client();
    const auto copies = client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    const auto calls = client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
    ASSERT_EQ(copies.size(), 2u);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].cbid, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2);
    EXPECT_EQ(calls[0].correlationId, copies[0].correlationId);
    EXPECT_NE(copies[0].correlationId, copies[1].correlationId);
    EXPECT_LT(calls[0].start, calls[0].end);
    EXPECT_EQ(client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME).size(), 0u);
  });
}

TEST(CuptiRuntime, TwoRecordsAndTwoNumbersWithSeparateIds) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_CUPTI", "api=separate"}}, [] {
    const Calls calls =
        copies_with({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
    ASSERT_EQ(calls.copies.size(), 2u);
    ASSERT_EQ(calls.runtime.size(), 2u);
    ASSERT_EQ(calls.driver.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(calls.copies[i].correlationId, calls.runtime[i].correlationId);
      EXPECT_NE(calls.copies[i].correlationId, calls.driver[i].correlationId);
      EXPECT_LE(calls.runtime[i].start, calls.driver[i].start);
      EXPECT_GE(calls.runtime[i].end, calls.driver[i].end);
    }
  });
}

// Calls whose work is shared: what CUPTI sees is the function that was called, with its result.
void call_what_shares() {
  char host = 0;
  cudaFuncAttributes attributes;
  int blocks = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  EXPECT_NE(cudaFuncGetAttributes(&attributes, &host), cudaSuccess);
  EXPECT_NE(cudaFuncSetAttribute(&host, cudaFuncAttributeMaxDynamicSharedMemorySize, 1), cudaSuccess);
  EXPECT_NE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &host, 128, 0), cudaSuccess);
  EXPECT_NE(cudaMemcpyPeer(&host, 7, &host, 8, 1), cudaSuccess);
  EXPECT_NE(cudaGraphAddKernelNode(&node, graph, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_NE(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_NE(cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, &host, &host, 1, 0, cudaMemcpyDefault),
            cudaSuccess);
}

TEST(CuptiRuntime, SeesTheCallThatWasMade) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_RUNTIME});
    call_what_shares();
    finish_client();
    for (const uint32_t number :
         {CUPTI_RUNTIME_TRACE_CBID_cudaFuncGetAttributes_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaFuncSetAttribute_v9000,
          CUPTI_RUNTIME_TRACE_CBID_cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6000,
          CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeer_v4000, CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddKernelNode_v10000,
          CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemcpyNode_v10000,
          CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddMemcpyNodeToSymbol_v11010}) {
      const auto calls = calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {number});
      ASSERT_EQ(calls.size(), 1u) << number;
      EXPECT_NE(calls[0].returnValue, 0u) << number;
    }
  });
}

void call_what_is_another() {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
}

TEST(CuptiRuntime, SeesACallThatIsAnotherOnce) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_RUNTIME});
    call_what_is_another();
    finish_client();
    std::vector<uint32_t> seen;
    for (const auto& call : client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME)) seen.push_back(call.cbid);
    EXPECT_EQ(seen, (std::vector<uint32_t>{CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020,
                                           CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreate_v3020,
                                           CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020}));
  });
}

TEST(CuptiRuntime, NoNumberWhereNobodyLooks) {
  const ChildEnd end = run_child({}, [] { copy_twice(); });
  ASSERT_EQ(end.lines("copy").size(), 2u);
  EXPECT_LT(end.lines("copy")[0]["correlation"], end.lines("copy")[1]["correlation"]);
}

}  // namespace
}  // namespace simgpu
