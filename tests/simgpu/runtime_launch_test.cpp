#include <cuda.h>

#include "tests/simgpu/runtime_fixture.h"

namespace simgpu {
namespace {

using RuntimeLaunch = RuntimeTest;

TEST_F(RuntimeLaunch, KernelsOfALoadedLibraryAreLaunchedByTheirHandle) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = load_kernel(&library);
  void* data = nullptr;
  unsigned count = 4;
  void* arguments[] = {&data, &count};
  ASSERT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3{2, 1, 1}, dim3{32, 1, 1}, arguments, 0, nullptr), cudaSuccess);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{4, 1, 1};
  config.blockDim = dim3{64, 1, 1};
  EXPECT_EQ(cudaLaunchKernelExC(&config, kernel, arguments), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3{2, 1, 1}, dim3{4096, 1, 1}, arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
}

TEST_F(RuntimeLaunch, CapturedLaunchesBecomeNodes) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = load_kernel(&library);
  void* data = nullptr;
  unsigned count = 4;
  void* arguments[] = {&data, &count};
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 64), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3{3, 1, 1}, dim3{32, 1, 1}, arguments, 0, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(data, 5, 64, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphNode_t nodes[4] = {};
  std::size_t found = 4;
  EXPECT_EQ(cudaGraphGetNodes(graph, nodes, &found), cudaSuccess);
  ASSERT_EQ(found, 2u);
  cudaGraphNodeType type{};
  EXPECT_EQ(cudaGraphNodeGetType(nodes[0], &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  cudaKernelNodeParams kernel_node{};
  EXPECT_EQ(cudaGraphKernelNodeGetParams(nodes[0], &kernel_node), cudaSuccess);
  EXPECT_EQ(kernel_node.gridDim.x, 3u);
  EXPECT_EQ(kernel_node.blockDim.x, 32u);
  cudaMemsetParams memset_node{};
  EXPECT_EQ(cudaGraphMemsetNodeGetParams(nodes[1], &memset_node), cudaSuccess);
  EXPECT_EQ(memset_node.dst, data);
  EXPECT_EQ(memset_node.value, 5u);
  EXPECT_EQ(memset_node.width * memset_node.elementSize, 64u);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  unsigned char byte = 0;
  EXPECT_EQ(cudaMemcpy(&byte, data, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(byte, 5);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
}

TEST_F(RuntimeLaunch, CopyNodesKeepTheirParameters) {
  void* data = nullptr;
  unsigned char in[32] = {1, 2, 3};
  unsigned char out[32] = {};
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t copy_in = nullptr, copy_out = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaMalloc(&data, sizeof in), cudaSuccess);
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, data, in, sizeof in, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copy_out, graph, &copy_in, 1, out, data, sizeof in, cudaMemcpyDeviceToHost),
            cudaSuccess);
  cudaMemcpy3DParms parms{};
  EXPECT_EQ(cudaGraphMemcpyNodeGetParams(copy_in, &parms), cudaSuccess);
  EXPECT_EQ(parms.kind, cudaMemcpyHostToDevice);
  EXPECT_EQ(parms.srcPtr.ptr, in);
  EXPECT_EQ(parms.dstPtr.ptr, data);
  EXPECT_EQ(parms.extent.width, sizeof in);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(RuntimeLaunch, DriverEntryPointsFollowVersionAndStreamFlag) {
  void *legacy = nullptr, *per_thread = nullptr, *unknown = &unknown;
  cudaDriverEntryPointQueryResult status{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &legacy, 13000, cudaEnableLegacyStream, &status),
            cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuLaunchKernel", &per_thread, 13000, cudaEnablePerThreadDefaultStream, &status),
      cudaSuccess);
  EXPECT_EQ(legacy, reinterpret_cast<void*>(&cuLaunchKernel));
  EXPECT_NE(per_thread, legacy);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &unknown, 13000, cudaEnableDefault, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(unknown, nullptr);
}

TEST_F(RuntimeLaunch, EventsMeasureTheirStream) {
  cudaEvent_t begin = nullptr, end = nullptr;
  float milliseconds = -1;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(begin, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_LT(milliseconds, 1000.0f);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

}  // namespace
}  // namespace simgpu
