#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

// The runtime on machines with no driver, and on one whose driver knows no cuGetProcAddress_v2 (old_driver.c).
// LD_LIBRARY_PATH holds the one or nothing; the test is picked by --gtest_filter to match.
namespace simgpu {
namespace {

TEST(RuntimeWithoutDriver, SaysThatTheDriverIsInsufficient) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    GTEST_SKIP() << "skipped: this machine has a driver";
  }
  int count = 7;
  int version = 7;
  void* pointer = nullptr;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
}

TEST(RuntimeOnOldDriver, FindsEntriesByPlainLookUp) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&count, 0, 1), cudaErrorNotSupported);
}

}  // namespace
}  // namespace simgpu
