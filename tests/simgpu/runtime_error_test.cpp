#include <string>
#include <thread>

#include "tests/simgpu/runtime_fixture.h"

namespace simgpu {
namespace {

using RuntimeError = RuntimeTest;

TEST_F(RuntimeError, NamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(54321)), "unrecognized error code");
}

TEST_F(RuntimeError, LastErrorIsClearedByGetAndKeptByPeek) {
  EXPECT_EQ(cudaMalloc(nullptr, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeError, LastErrorBelongsToItsThread) {
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread([&] { elsewhere = cudaGetLastError(); }).join();
  EXPECT_EQ(elsewhere, cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(RuntimeError, WhatIsNotModelledSaysSo) {
  cudaExternalMemory_t memory = nullptr;
  cudaExternalMemoryHandleDesc desc{};
  EXPECT_EQ(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
}

TEST_F(RuntimeError, UnknownKernelsAndSymbolsHaveTheirOwnCodes) {
  int local = 0;
  EXPECT_EQ(cudaLaunchKernel(&local, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaMemcpyToSymbol(&local, &local, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaMemcpy(&local, &local, 4, static_cast<cudaMemcpyKind>(7)), cudaErrorInvalidMemcpyDirection);
}

TEST_F(RuntimeError, VersionsAreTheToolkits) {
  int runtime = 0;
  int driver = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  EXPECT_EQ(runtime, CUDART_VERSION);
  EXPECT_EQ(driver, 13000);
}

}  // namespace
}  // namespace simgpu
