#include <cuda.h>

#include <algorithm>

#include "tests/simgpu/runtime_fixture.h"

namespace simgpu {
namespace {

using RuntimeMemory = RuntimeTest;

constexpr std::size_t size = 1000;

TEST_F(RuntimeMemory, NothingIsAllocatedForNoBytes) {
  void* pointer = &pointer;
  EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
}

TEST_F(RuntimeMemory, CopiesOfEveryDirection) {
  const auto in = counted(size);
  std::vector<unsigned char> out(size);
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, size), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, size), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(a, in.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(b, a, size, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(out.data(), b, size, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(out, in);
  EXPECT_EQ(cudaMemset(a, 9, size), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(out.data(), a, size, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(out, std::vector<unsigned char>(size, 9));
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFree(b), cudaSuccess);
}

TEST_F(RuntimeMemory, PointerAttributesTellTheKinds) {
  void *device = nullptr, *pinned = nullptr, *managed = nullptr;
  int local = 0;
  ASSERT_EQ(cudaMalloc(&device, size), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, size), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, size, cudaMemAttachGlobal), cudaSuccess);
  cudaPointerAttributes facts{};
  EXPECT_EQ(cudaPointerGetAttributes(&facts, device), cudaSuccess);
  EXPECT_EQ(facts.type, cudaMemoryTypeDevice);
  EXPECT_EQ(facts.device, 0);
  EXPECT_EQ(facts.devicePointer, device);
  EXPECT_EQ(cudaPointerGetAttributes(&facts, pinned), cudaSuccess);
  EXPECT_EQ(facts.type, cudaMemoryTypeHost);
  EXPECT_EQ(facts.hostPointer, pinned);
  EXPECT_EQ(cudaPointerGetAttributes(&facts, managed), cudaSuccess);
  EXPECT_EQ(facts.type, cudaMemoryTypeManaged);
  EXPECT_EQ(cudaPointerGetAttributes(&facts, &local), cudaSuccess);
  EXPECT_EQ(facts.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(facts.devicePointer, nullptr);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(RuntimeMemory, RowsKeepTheirPitch) {
  constexpr std::size_t width = 100, height = 10;
  const auto in = counted(width * height);
  std::vector<unsigned char> out(width * height);
  void* rows = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&rows, &pitch, width, height), cudaSuccess);
  EXPECT_GE(pitch, width);
  EXPECT_EQ(cudaMemcpy2D(rows, pitch, in.data(), width, width, height, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemset2D(rows, pitch, 0, 10, height), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2D(out.data(), width, rows, pitch, width, height, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(std::all_of(out.begin(), out.begin() + 10, [](unsigned char byte) { return byte == 0; }));
  EXPECT_TRUE(std::equal(out.begin() + 10, out.begin() + 100, in.begin() + 10));
  EXPECT_EQ(out[9 * width + 9], 0);
  EXPECT_EQ(out[9 * width + 10], in[9 * width + 10]);
  EXPECT_EQ(cudaFree(rows), cudaSuccess);
}

TEST_F(RuntimeMemory, ArraysAreMeasuredInElements) {
  constexpr std::size_t width = 16, height = 4;
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
  const auto in = counted(width * height * 8);
  std::vector<unsigned char> out(in.size());
  cudaArray_t array = nullptr;
  ASSERT_EQ(cudaMallocArray(&array, &floats, width, height, 0), cudaSuccess);
  cudaChannelFormatDesc desc{};
  cudaExtent extent{};
  EXPECT_EQ(cudaArrayGetInfo(&desc, &extent, nullptr, array), cudaSuccess);
  EXPECT_EQ(desc.x, 32);
  EXPECT_EQ(desc.y, 32);
  EXPECT_EQ(desc.z, 0);
  EXPECT_EQ(desc.f, cudaChannelFormatKindFloat);
  EXPECT_EQ(extent.width, width);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<unsigned char*>(in.data()), width * 8, width, height};
  copy.dstArray = array;
  copy.extent = {width, height, 1};
  copy.kind = cudaMemcpyHostToDevice;
  EXPECT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2DFromArray(out.data(), width * 8, array, 0, 0, width * 8, height, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(out, in);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
  const cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  EXPECT_EQ(cudaMallocArray(&array, &three, width, height, 0), cudaErrorInvalidChannelDescriptor);
}

TEST_F(RuntimeMemory, StreamOrderedAllocationsComeFromTheirPool) {
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  void* pointer = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&pointer, 1 << 20, stream), cudaSuccess);
  unsigned long long used = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
  EXPECT_GE(used, 1u << 20);
  EXPECT_EQ(cudaFreeAsync(pointer, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(RuntimeMemory, ResetGivesAWorkingDeviceBack) {
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, size), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&pointer, size), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

TEST_F(RuntimeMemory, ContextTakenAwayByTheDriverInterfaceComesBack) {
  void* pointer = nullptr;
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cudaMalloc(&pointer, size), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  EXPECT_NE(context, nullptr);
}

}  // namespace
}  // namespace simgpu
