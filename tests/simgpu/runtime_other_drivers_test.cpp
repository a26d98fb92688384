#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

// The runtime on machines with no driver, and on one whose driver knows no cuGetProcAddress_v2 (old_driver.c).
// DRIVER in the environment says which of them LD_LIBRARY_PATH holds.
namespace simgpu {
namespace {

bool driver_is(const char* which) {
  const char* set = std::getenv("DRIVER");
  return set != nullptr && std::strcmp(set, which) == 0;
}

TEST(RuntimeWithoutDriver, SaysThatTheDriverIsInsufficient) {
  if (!driver_is("none")) {
    GTEST_SKIP() << "needs DRIVER=none";
  }
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    GTEST_SKIP() << "this machine has a driver";
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
  if (!driver_is("old")) {
    GTEST_SKIP() << "needs DRIVER=old";
  }
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&count, 0, 1), cudaErrorNotSupported);
}

}  // namespace
}  // namespace simgpu
