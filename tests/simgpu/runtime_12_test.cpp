// What the runtime of CUDA 12 has otherwise than that of 13, called as programs that were compiled against its headers call it.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

#include "tests/simgpu/runtime_fixture.h"

namespace simgpu {
namespace {

static_assert(CUDART_VERSION >= 12000 && CUDART_VERSION < 13000);

using Runtime12 = RuntimeTest;

TEST_F(Runtime12, SaysItsVersionOnADriverOf13) {
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
}

TEST_F(Runtime12, DevicePropertiesHaveTheLayoutOf12) {
  cudaDeviceProp facts;
  std::memset(&facts, 0x5a, sizeof facts);
  ASSERT_EQ(cudaGetDeviceProperties(&facts, 0), cudaSuccess);
  EXPECT_STREQ(facts.name, "Simulated GPU");
  EXPECT_EQ(facts.major, 9);
  EXPECT_EQ(facts.multiProcessorCount, 132);
  EXPECT_EQ(facts.warpSize, 32);
  EXPECT_EQ(facts.clusterLaunch, 1);
  for (const auto& [attribute, value] :
       {std::pair{cudaDevAttrClockRate, facts.clockRate},
        {cudaDevAttrMemoryClockRate, facts.memoryClockRate},
        {cudaDevAttrComputeMode, facts.computeMode},
        {cudaDevAttrSingleToDoublePrecisionPerfRatio, facts.singleToDoublePrecisionPerfRatio},
        {cudaDevAttrMaxTexture1DLinearWidth, facts.maxTexture1DLinear}}) {
    int wanted = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&wanted, attribute, 0), cudaSuccess);
    EXPECT_EQ(value, wanted) << attribute;
  }
  EXPECT_GT(facts.clockRate, 0);
}

TEST_F(Runtime12, ManagedMemoryGoesToADeviceByItsNumber) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 1 << 16, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseSetPreferredLocation, 0), cudaSuccess);
  int location = -7;
  EXPECT_EQ(
      cudaMemRangeGetAttribute(&location, sizeof location, cudaMemRangeAttributePreferredLocation, memory, 1 << 16),
      cudaSuccess);
  EXPECT_EQ(location, 0);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, 1 << 16, cudaCpuDeviceId, nullptr), cudaSuccess);
  EXPECT_NE(cudaMemPrefetchAsync(memory, 1 << 16, 77, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync_v2(memory, 1 << 16, {cudaMemLocationTypeDevice, 0}, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Runtime12, GraphsWithAndWithoutEdgeData) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t a = nullptr, b = nullptr, c = nullptr;
  cudaGraphNodeParams empty{};
  empty.type = cudaGraphNodeTypeEmpty;
  ASSERT_EQ(cudaGraphAddNode(&a, graph, nullptr, 0, &empty), cudaSuccess);
  ASSERT_EQ(cudaGraphAddNode(&b, graph, &a, 1, &empty), cudaSuccess);
  ASSERT_EQ(cudaGraphAddNode_v2(&c, graph, nullptr, nullptr, 0, &empty), cudaSuccess);
  EXPECT_EQ(cudaGraphAddDependencies(graph, &b, &c, 1), cudaSuccess);
  cudaGraphNode_t from[3], to[3];
  size_t count = 3;
  EXPECT_EQ(cudaGraphGetEdges(graph, from, to, &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  cudaGraphEdgeData data[3];
  count = 3;
  EXPECT_EQ(cudaGraphGetEdges_v2(graph, from, to, data, &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  count = 3;
  EXPECT_EQ(cudaGraphNodeGetDependencies(c, from, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(from[0], b);
  count = 3;
  EXPECT_EQ(cudaGraphNodeGetDependentNodes(a, to, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(to[0], b);
  EXPECT_EQ(cudaGraphRemoveDependencies(graph, &b, &c, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Runtime12, CaptureIsAskedForInBothForms) {
  cudaStream_t stream = nullptr;
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 64), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(data, 1, 64, stream), cudaSuccess);
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0, again = 0;
  cudaGraph_t graph = nullptr, whole = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &count), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(cudaStreamGetCaptureInfo_v3(stream, &status, &again, &graph, &dependencies, &edges, &count), cudaSuccess);
  EXPECT_EQ(again, id);
  EXPECT_EQ(cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, cudaStreamSetCaptureDependencies), cudaSuccess);
  EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(cudaStreamEndCapture(stream, &whole), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(whole), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(Runtime12, BatchesOfCopiesTellWhichFailed) {
  const auto in = counted(64);
  std::vector<unsigned char> out(64);
  void* data = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 64), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  void* targets[] = {data};
  void* sources[] = {const_cast<unsigned char*>(in.data())};
  size_t sizes[] = {64}, indices[] = {0}, failed = 99;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  EXPECT_EQ(cudaMemcpyBatchAsync(targets, sources, sizes, 1, &attributes, indices, 1, &failed, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(out.data(), data, 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(out, in);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(Runtime12, OldNamesAndVersionNodes) {
  EXPECT_EQ(cudaThreadSynchronize(), cudaSuccess);
  size_t limit = 0;
  EXPECT_EQ(cudaThreadGetLimit(&limit, cudaLimitMallocHeapSize), cudaSuccess);
  EXPECT_GT(limit, 0u);
  void* library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlvsym(library, "cudaMalloc", "libcudart.so.12"), nullptr);
  EXPECT_EQ(dlvsym(library, "cudaMalloc", "libcudart.so.13"), nullptr);
  dlclose(library);
}

}  // namespace
}  // namespace simgpu
