// Loaded by drv_plugin; brings its own runtime with hidden symbols, as a library with the static runtime does.
#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

__global__ void plugin_kernel(float* data) { data[threadIdx.x] += 1; }

extern "C" int run_plugin(int argc, char** argv) {
  float* data = nullptr;
  long launches = 0;
  CHECK(cudaMalloc(&data, 4096));
  for (long round = 7 * option(argc, argv, "count", 3); round > 0; --round, ++launches) {
    plugin_kernel<<<1 + launches % 5, 32>>>(data);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(data));
  std::printf("launches %ld\n", launches);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
