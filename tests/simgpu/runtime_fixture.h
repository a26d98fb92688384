#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace simgpu {

// A kernel that takes (pointer, count), loaded as programs load their own code.
inline constexpr char runtime_test_ptx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 data, .param .u32 count) { ret; }
)";

// Every test starts without a last error and leaves none.
class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
    static_cast<void>(cudaGetLastError());
  }

  static cudaKernel_t load_kernel(cudaLibrary_t* library) {
    cudaKernel_t kernel = nullptr;
    EXPECT_EQ(cudaLibraryLoadData(library, runtime_test_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
    EXPECT_EQ(cudaLibraryGetKernel(&kernel, *library, "touch"), cudaSuccess);
    return kernel;
  }

  static std::vector<unsigned char> counted(std::size_t size) {
    std::vector<unsigned char> bytes(size);
    for (std::size_t index = 0; index < size; ++index) {
      bytes[index] = static_cast<unsigned char>(index * 3 + 1);
    }
    return bytes;
  }
};

}  // namespace simgpu
