// The runtime's calls as CUPTI sees them: one number for a runtime call and the driver call inside it, or two.
#include <cuda_runtime_api.h>

#include "tests/simgpu/cupti_fixture.h"

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

void check(bool separate) {
  start_client({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
  copy_twice();
  finish_client();
  const auto copies = client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  const auto runtime = calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
                                                              CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020});
  const auto driver = calls_of(CUPTI_ACTIVITY_KIND_DRIVER,
                               {CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2});
  auto truth = by_correlation(truth_so_far("copy"));
  ASSERT_EQ(copies.size(), 2u);
  ASSERT_EQ(runtime.size(), 2u);
  ASSERT_EQ(driver.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(copies[i].correlationId, runtime[i].correlationId);
    EXPECT_EQ(copies[i].correlationId == driver[i].correlationId, !separate);
    EXPECT_EQ(truth.count(copies[i].correlationId), 1u);
    EXPECT_LE(runtime[i].start, driver[i].start);
    EXPECT_GE(runtime[i].end, driver[i].end);
  }
  EXPECT_EQ(calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020}).size(), 1u);
  EXPECT_EQ(calls_of(CUPTI_ACTIVITY_KIND_RUNTIME, {CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020}).size(), 1u);
}

TEST(CuptiRuntime, SharesItsNumberWithTheDriverCall) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}}, [] { check(false); });
}

TEST(CuptiRuntime, KeepsItsOwnNumberWithSeparateIds) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_CUPTI", "api=separate"}}, [] { check(true); });
}

TEST(CuptiRuntime, NoNumberWhereNobodyLooks) {
  const ChildEnd end = run_child({}, [] { copy_twice(); });
  ASSERT_EQ(end.lines("copy").size(), 2u);
  EXPECT_LT(end.lines("copy")[0]["correlation"], end.lines("copy")[1]["correlation"]);
}

}  // namespace
}  // namespace simgpu
