// graphs [count=N] [exit=E]: one graph built node by node, one captured over two streams; cloned, updated, replayed.
// Prints replays, nodes, the kernel executions that follow from them, host calls and the update result (0 = updated).
#include <vector>

#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

__global__ void grow(float* data, float by, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) data[index] += by;
}

constexpr int elements = 1024;
constexpr size_t bytes = elements * sizeof(float);

static size_t node_count(cudaGraph_t graph) {
  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

// copy in -> kernel -> kernel -> copy out, and a memset and a host function beside them.
static cudaGraph_t explicit_graph(float* device, float* in, float* out, int* host_calls, cudaGraphNode_t* kernel) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t copy_in = nullptr, second = nullptr, copy_out = nullptr, fill = nullptr, host = nullptr;
  float by = 1;
  int count = elements;
  void* arguments[] = {&device, &by, &count};
  cudaKernelNodeParams launch{};
  launch.func = reinterpret_cast<void*>(grow);
  launch.gridDim = dim3(4);
  launch.blockDim = dim3(256);
  launch.kernelParams = arguments;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, device, in, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddKernelNode(kernel, graph, &copy_in, 1, &launch));
  CHECK(cudaGraphAddKernelNode(&second, graph, kernel, 1, &launch));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_out, graph, &second, 1, out, device, bytes, cudaMemcpyDeviceToHost));
  cudaMemsetParams zero{};
  zero.dst = device + elements;
  zero.elementSize = 4;
  zero.width = elements;
  zero.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero));
  cudaHostNodeParams call{};
  call.fn = [](void* counter) { ++*static_cast<int*>(counter); };
  call.userData = host_calls;
  CHECK(cudaGraphAddHostNode(&host, graph, &copy_out, 1, &call));
  return graph;
}

static cudaGraph_t captured_graph(float* device, cudaStream_t stream, cudaStream_t side) {
  cudaGraph_t graph = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  grow<<<4, 256, 0, stream>>>(device, 2, elements);
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(side, fork, 0));
  grow<<<2, 128, 0, side>>>(device + elements, 3, elements);
  CHECK(cudaMemsetAsync(device, 0, bytes, stream));
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  grow<<<1, 64, 0, stream>>>(device, 4, elements);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return graph;
}

int main(int argc, char** argv) {
  const long replays = option(argc, argv, "count", 5);
  float *device = nullptr, *in = nullptr, *out = nullptr;
  int host_calls = 0;
  cudaStream_t stream = nullptr, side = nullptr;
  CHECK(cudaMalloc(&device, 2 * bytes));
  CHECK(cudaMallocHost(&in, bytes));
  CHECK(cudaMallocHost(&out, bytes));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  for (int index = 0; index < elements; ++index) in[index] = static_cast<float>(index);

  cudaGraphNode_t kernel = nullptr, cloned_kernel = nullptr;
  cudaGraph_t built = explicit_graph(device, in, out, &host_calls, &kernel);
  cudaGraph_t captured = captured_graph(device, stream, side);
  cudaGraph_t clone = nullptr;
  cudaGraphExec_t built_exec = nullptr, captured_exec = nullptr;
  CHECK(cudaGraphInstantiate(&built_exec, built, 0));
  CHECK(cudaGraphInstantiateWithFlags(&captured_exec, captured, 0));
  for (long replay = 0; replay < replays; ++replay) {
    CHECK(cudaGraphLaunch(built_exec, stream));
    CHECK(cudaGraphLaunch(captured_exec, stream));
  }
  CHECK(cudaGraphClone(&clone, built));
  CHECK(cudaGraphNodeFindInClone(&cloned_kernel, kernel, clone));
  cudaKernelNodeParams wider{};
  CHECK(cudaGraphKernelNodeGetParams(cloned_kernel, &wider));
  wider.gridDim = dim3(8);
  CHECK(cudaGraphKernelNodeSetParams(cloned_kernel, &wider));
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphExecUpdate(built_exec, clone, &info));
  CHECK(cudaGraphLaunch(built_exec, stream));
  CHECK(cudaStreamSynchronize(stream));

  const size_t nodes = node_count(built) + node_count(captured);
  std::printf("graph launches %ld nodes %zu kernels %ld host calls %d update %d\n", 2 * replays + 1, nodes,
              5 * replays + 2, host_calls, static_cast<int>(info.result));
  CHECK(cudaGraphExecDestroy(built_exec));
  CHECK(cudaGraphExecDestroy(captured_exec));
  CHECK(cudaGraphDestroy(clone));
  CHECK(cudaGraphDestroy(built));
  CHECK(cudaGraphDestroy(captured));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
  CHECK(cudaFree(device));
  return static_cast<int>(option(argc, argv, "exit", 0));
}
