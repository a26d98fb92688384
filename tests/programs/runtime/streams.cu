// streams [count=N] [exit=E]: the default stream, a blocking, a non-blocking and a priority stream, events between
// them, queries, callbacks. Built twice: the second time with -default-stream per-thread. Prints what it counted.
#include <atomic>

#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

__global__ void work(float* data, int rounds) {
  for (int round = 0; round < rounds; ++round) data[threadIdx.x] += 1;
}

static std::atomic<long> callbacks{0};

static void CUDART_CB stream_callback(cudaStream_t, cudaError_t, void*) { ++callbacks; }
static void CUDART_CB host_function(void*) { ++callbacks; }

// The next stream waits for the one before it, by an event.
static long chain(cudaStream_t* streams, int count, cudaEvent_t event, float* data) {
  long launches = 0;
  for (int index = 0; index < count; ++index) {
    if (index > 0) CHECK(cudaStreamWaitEvent(streams[index], event, 0));
    work<<<1 + index, 64, 0, streams[index]>>>(data, 100);
    CHECK(cudaEventRecord(event, streams[index]));
    ++launches;
  }
  return launches;
}

int main(int argc, char** argv) {
  float* data = nullptr;
  CHECK(cudaMalloc(&data, 4096));
  cudaStream_t streams[4] = {nullptr, nullptr, nullptr, nullptr};
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreate(&streams[1]));
  CHECK(cudaStreamCreateWithFlags(&streams[2], cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&streams[3], cudaStreamNonBlocking, greatest));
  cudaEvent_t event = nullptr, begin = nullptr, end = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  long launches = 0, in_order = 0;
  for (long round = option(argc, argv, "count", 10); round > 0; --round) {
    CHECK(cudaEventRecord(begin, streams[0]));
    launches += chain(streams, 4, event, data);
    CHECK(cudaLaunchHostFunc(streams[1], host_function, nullptr));
    CHECK(cudaStreamAddCallback(streams[2], stream_callback, nullptr, 0));
    work<<<2, 32>>>(data, 10);
    work<<<2, 32, 0, cudaStreamLegacy>>>(data, 10);
    work<<<2, 32, 0, cudaStreamPerThread>>>(data, 10);
    launches += 3;
    CHECK(cudaEventRecord(end, streams[3]));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaStreamSynchronize(streams[1]));
    CHECK(cudaStreamSynchronize(nullptr));
    CHECK(cudaDeviceSynchronize());
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(cudaEventQuery(end));
    for (cudaStream_t stream : streams) CHECK(cudaStreamQuery(stream));
    in_order += milliseconds > 0 ? 1 : 0;
  }
  for (int index = 1; index < 4; ++index) CHECK(cudaStreamDestroy(streams[index]));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(data));
  std::printf("launches %ld callbacks %ld rounds in order %ld\n", launches, callbacks.load(), in_order);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
