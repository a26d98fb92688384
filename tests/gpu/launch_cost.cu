// What a launch call takes on the host: empty kernels, and replays of a graph of empty kernels. Prints medians in ns:
//   launch NS graph_launch NS graph_replay NS
// launch: one of 20,000 launches, in rounds of 500 so that the launch queue (1024 deep) never fills; graph_launch: one
// cudaGraphLaunch of 1000 nodes; graph_replay: from that call to the end of the replay.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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

__global__ void empty() {}

constexpr int kRounds = 40, kPerRound = 500, kNodes = 1000, kReplays = 100;

static double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<double> launch, graph_launch, graph_replay;
  for (int round = -2; round < kRounds; ++round) {  // two to warm up
    CHECK(cudaStreamSynchronize(stream));
    const double begin = now_ns();
    for (int i = 0; i < kPerRound; ++i) empty<<<1, 1, 0, stream>>>();
    if (round >= 0) launch.push_back((now_ns() - begin) / kPerRound);
  }
  CHECK(cudaGetLastError());

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kNodes; ++i) empty<<<1, 1, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int replay = -2; replay < kReplays; ++replay) {
    CHECK(cudaStreamSynchronize(stream));
    const double begin = now_ns();
    CHECK(cudaGraphLaunch(exec, stream));
    const double launched = now_ns();
    CHECK(cudaStreamSynchronize(stream));
    if (replay < 0) continue;
    graph_launch.push_back(launched - begin);
    graph_replay.push_back(now_ns() - begin);
  }
  std::printf("launch %.1f graph_launch %.1f graph_replay %.1f\n", median(launch), median(graph_launch),
              median(graph_replay));
  return 0;
}
