// errors [exit=E]: calls that fail, each with the code that it must give, and the rules of the last error.
// Prints one line per call; exit code 71 when any of them answered otherwise.
#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

__global__ void nothing() {}

static int wrong = 0;

static void expect(const char* what, cudaError_t got, cudaError_t wanted) {
  std::printf("%s: %s\n", what, cudaGetErrorName(got));
  if (got != wanted) {
    std::printf("  wanted %s\n", cudaGetErrorName(wanted));
    ++wrong;
  }
}

static void failing_calls() {
  void* pointer = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t first = nullptr, second = nullptr;
  float milliseconds = 0;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&second));
  expect("cudaMalloc of 1 EiB", cudaMalloc(&pointer, size_t{1} << 60), cudaErrorMemoryAllocation);
  expect("cudaGetLastError", cudaGetLastError(), cudaErrorMemoryAllocation);
  expect("cudaGetLastError again", cudaGetLastError(), cudaSuccess);
  expect("cudaSetDevice(1000)", cudaSetDevice(1000), cudaErrorInvalidDevice);
  expect("cudaPeekAtLastError", cudaPeekAtLastError(), cudaErrorInvalidDevice);
  expect("cudaPeekAtLastError again", cudaPeekAtLastError(), cudaErrorInvalidDevice);
  expect("a success in between", cudaStreamSynchronize(stream), cudaSuccess);
  expect("cudaGetLastError after a success", cudaGetLastError(), cudaErrorInvalidDevice);
  expect("cudaMalloc to null", cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
  expect("cudaMemcpy with no such kind", cudaMemcpy(&wrong, &wrong, 4, static_cast<cudaMemcpyKind>(9)),
         cudaErrorInvalidMemcpyDirection);
  expect("cudaEventElapsedTime of unrecorded events", cudaEventElapsedTime(&milliseconds, first, second),
         cudaErrorInvalidResourceHandle);
  expect("cudaFree of a stack address", cudaFree(&milliseconds), cudaErrorInvalidValue);
  expect("cudaLaunchKernel of a data address", cudaLaunchKernel(&wrong, 1, 1, nullptr, 0, nullptr),
         cudaErrorInvalidDeviceFunction);
  expect("cudaMemcpyToSymbol of a local", cudaMemcpyToSymbol(&milliseconds, &wrong, 4), cudaErrorInvalidSymbol);
  CHECK(cudaEventDestroy(first));
  CHECK(cudaEventDestroy(second));
  CHECK(cudaStreamDestroy(stream));
}

static void failing_launches() {
  cudaGetLastError();
  nothing<<<1, 2048>>>();
  expect("2048 threads in a block", cudaGetLastError(), cudaErrorInvalidConfiguration);
  nothing<<<1, 0>>>();
  expect("no threads in a block", cudaGetLastError(), cudaErrorInvalidConfiguration);
  nothing<<<1, 32, 1 << 20>>>();
  expect("1 MiB of shared memory", cudaGetLastError(), cudaErrorInvalidValue);
  nothing<<<1, 32>>>();
  expect("a good launch", cudaGetLastError(), cudaSuccess);
  expect("cudaDeviceSynchronize", cudaDeviceSynchronize(), cudaSuccess);
}

static void failing_capture() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  expect("cudaStreamEndCapture of no capture", cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  expect("cudaStreamSynchronize in a capture", cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  expect("cudaStreamEndCapture of a broken capture", cudaStreamEndCapture(stream, &graph),
         cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamDestroy(stream));
  cudaGetLastError();
}

int main(int argc, char** argv) {
  failing_calls();
  failing_launches();
  failing_capture();
  std::printf("wrong %d\n", wrong);
  return wrong != 0 ? 71 : static_cast<int>(option(argc, argv, "exit", 0));
}
