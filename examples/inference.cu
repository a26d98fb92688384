// Inference over requests that come in turn: the whole model is one captured CUDA graph; input and output go through
// pinned memory on two streams that take turns. Many small kernels: bound by their launches when it is not a graph.
//
//   nvcc -O2 -arch=sm_90 -cudart shared inference.cu -o inference
//   ./inference [requests] [eager]        eager: launches every kernel by itself instead of replaying the graph
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int width = 1024;
constexpr int layers = 12;
constexpr int lanes = 2;

void check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "inference.cu:%d: %s\n", line, cudaGetErrorString(error));
    std::exit(1);
  }
}
#define CHECK(call) check((call), __LINE__)

__global__ void fill(float* values, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = static_cast<float>((index * 2654435761u) >> 20) / 4096.0f / width;
}

// One output per block: a dot product over the row.
__global__ void dense(const float* weights, const float* in, float* out) {
  __shared__ float partial[128];
  float sum = 0;
  for (int index = threadIdx.x; index < width; index += blockDim.x)
    sum += weights[blockIdx.x * width + index] * in[index];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

__global__ void activate(float* values) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  values[index] = values[index] / (1.0f + expf(-values[index]));
}

struct Lane {
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  float *in = nullptr, *out = nullptr;     // pinned
  float *ping = nullptr, *pong = nullptr;  // device

  void run_model(const float* weights) {
    CHECK(cudaMemcpyAsync(ping, in, sizeof(float) * width, cudaMemcpyHostToDevice, stream));
    for (int layer = 0; layer < layers; ++layer) {
      dense<<<width, 128, 0, stream>>>(weights, layer % 2 == 0 ? ping : pong, layer % 2 == 0 ? pong : ping);
      activate<<<width / 256, 256, 0, stream>>>(layer % 2 == 0 ? pong : ping);
    }
    CHECK(cudaMemcpyAsync(out, layers % 2 == 0 ? ping : pong, sizeof(float) * width, cudaMemcpyDeviceToHost, stream));
  }

  void prepare(const float* weights) {
    cudaGraph_t captured = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&in, sizeof(float) * width));
    CHECK(cudaMallocHost(&out, sizeof(float) * width));
    CHECK(cudaMalloc(&ping, sizeof(float) * width));
    CHECK(cudaMalloc(&pong, sizeof(float) * width));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    run_model(weights);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&graph, captured, 0));
    CHECK(cudaGraphDestroy(captured));
  }

  void release() {
    CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaFree(ping));
    CHECK(cudaFree(pong));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    CHECK(cudaStreamDestroy(stream));
  }
};

int main(int argc, char** argv) {
  const int requests = argc > 1 ? std::atoi(argv[1]) : 100;
  const bool eager = argc > 2 && std::strcmp(argv[2], "eager") == 0;
  float* weights = nullptr;
  Lane all[lanes];
  CHECK(cudaMalloc(&weights, sizeof(float) * width * width));
  fill<<<width * width / 256, 256>>>(weights, width * width);
  CHECK(cudaDeviceSynchronize());
  for (Lane& lane : all) lane.prepare(weights);
  double answer = 0;
  for (int request = 0; request < requests; ++request) {
    Lane& lane = all[request % lanes];
    CHECK(cudaStreamSynchronize(lane.stream));
    if (request >= lanes) answer += lane.out[0];
    for (int index = 0; index < width; ++index) lane.in[index] = static_cast<float>((index + request) % 13);
    eager ? lane.run_model(weights) : CHECK(cudaGraphLaunch(lane.graph, lane.stream));
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("requests %d answer %.6f\n", requests, answer);
  for (Lane& lane : all) lane.release();
  CHECK(cudaFree(weights));
  return 0;
}
