// Launches a number of kernels that it knows, in every way of the runtime API, checks what they computed, and prints
// the count.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                          \
  do {                                                       \
    cudaError_t e = (call);                                  \
    if (e != cudaSuccess) {                                  \
      std::printf("%s: %s\n", #call, cudaGetErrorString(e)); \
      std::exit(1);                                          \
    }                                                        \
  } while (0)

__global__ void add_one(int* counters, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counters[i], 1);
}

constexpr int kSize = 1000, kPlain = 500, kThreads = 4, kGraphNodes = 3, kGraphLaunches = 20;

int main() {
  int* counters;
  CHECK(cudaMalloc(&counters, kSize * sizeof(int)));
  CHECK(cudaMemset(counters, 0, kSize * sizeof(int)));
  int launches = 0, graph_launches = 0;

  for (int i = 0; i < kPlain; ++i, ++launches) add_one<<<(kSize + 127) / 128, 128>>>(counters, kSize);

  int n = kSize;
  void* arguments[] = {&counters, &n};
  for (int i = 0; i < kPlain; ++i, ++launches) {
    CHECK(cudaLaunchKernel(reinterpret_cast<void*>(add_one), dim3((kSize + 255) / 256), dim3(256), arguments, 0,
                           nullptr));
  }

  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t, launches += kPlain) {
    threads.emplace_back([=] {
      cudaStream_t stream;
      CHECK(cudaStreamCreate(&stream));
      for (int i = 0; i < kPlain; ++i) add_one<<<(kSize + 63) / 64, 64, 0, stream>>>(counters, kSize);
      CHECK(cudaStreamSynchronize(stream));
      CHECK(cudaStreamDestroy(stream));
    });
  }
  for (auto& thread : threads) thread.join();

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kGraphNodes; ++i) add_one<<<(kSize + 127) / 128, 128, 0, stream>>>(counters, kSize);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (; graph_launches < kGraphLaunches; ++graph_launches) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaDeviceSynchronize());

  std::vector<int> host(kSize);
  CHECK(cudaMemcpy(host.data(), counters, kSize * sizeof(int), cudaMemcpyDeviceToHost));
  int kernels = launches + graph_launches * kGraphNodes;
  for (int value : host) {
    if (value != kernels) {
      std::printf("a counter is %d, wanted %d\n", value, kernels);
      return 1;
    }
  }
  std::printf("launches %d graph_launches %d kernels %d\n", launches, graph_launches, kernels);
  return 0;
}
