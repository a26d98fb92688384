// memory [count=N] [exit=E]: every kind of allocation, and copies and memsets of every kind: 1D 2D 3D, symbols, arrays,
// peer (with itself where there is one device), async, batch. Prints counts and a checksum of the bytes that came back.
#include <vector>

#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

constexpr size_t width = 96;
constexpr size_t height = 8;
constexpr size_t bytes = width * height;

__device__ unsigned char variable[bytes];
__managed__ int shared_counter;

struct Work {
  std::vector<unsigned char> in = std::vector<unsigned char>(bytes);
  std::vector<unsigned char> out = std::vector<unsigned char>(bytes);
  long allocations = 0;
  long copies = 0;
  long memsets = 0;
  Checksum seen;

  void look() {
    for (unsigned char byte : out) seen.add(byte);
  }
};

static void linear(Work& work, cudaStream_t stream) {
  void *device = nullptr, *other = nullptr, *pinned = nullptr, *mapped = nullptr;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMalloc(&other, bytes));
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped));
  CHECK(cudaHostRegister(work.in.data(), bytes, cudaHostRegisterDefault));
  work.allocations += 5;
  CHECK(cudaMemcpy(device, work.in.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice));
  CHECK(cudaMemset(other, 0x5a, bytes / 2));
  CHECK(cudaMemcpyAsync(pinned, other, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(mapped, pinned, bytes, cudaMemcpyHostToHost, stream));
  CHECK(cudaMemsetAsync(device, 0x3c, bytes / 4, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpyAsync(other, mapped, bytes, cudaMemcpyDefault, stream));
  CHECK(cudaMemcpyPeer(device, 0, other, 0, bytes));
  CHECK(cudaMemcpyPeerAsync(other, 0, device, 0, bytes, stream));
  CHECK(cudaMemcpyToSymbol(variable, work.in.data(), bytes / 2));
  CHECK(cudaMemcpyFromSymbol(work.out.data(), variable, bytes / 2));
  CHECK(cudaMemcpy(work.out.data() + bytes / 2, static_cast<char*>(other) + bytes / 2, bytes / 2,
                   cudaMemcpyDeviceToHost));
  work.copies += 10;
  work.memsets += 2;
  work.look();
  CHECK(cudaHostUnregister(work.in.data()));
  CHECK(cudaFreeHost(mapped));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(other));
  CHECK(cudaFree(device));
}

static void strided(Work& work, cudaStream_t stream) {
  void* rows = nullptr;
  size_t pitch = 0;
  cudaPitchedPtr volume{};
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
  const cudaExtent extent = make_cudaExtent(width, height / 8, 5);
  CHECK(cudaMallocPitch(&rows, &pitch, width, height));
  CHECK(cudaMalloc3D(&volume, extent));
  CHECK(cudaMallocArray(&array, &format, width, height));
  work.allocations += 3;
  CHECK(cudaMemset2D(rows, pitch, 0x11, width, height));
  CHECK(cudaMemset2DAsync(rows, pitch, 0x22, width / 2, height, stream));
  CHECK(cudaMemset3D(volume, 0x33, extent));  // one driver memset per slice
  work.memsets += 3;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy2D(rows, pitch, work.in.data(), width, width / 4, height, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2DAsync(work.out.data(), width, rows, pitch, width, height, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  work.look();
  CHECK(cudaMemcpy2DToArray(array, 0, 0, work.in.data(), width, width, height, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2DFromArray(work.out.data(), width, array, 0, 0, width, height, cudaMemcpyDeviceToHost));
  work.look();
  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(work.in.data(), width, width, height / 8);
  box.dstPtr = volume;
  box.extent = extent;
  box.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&box));
  box.dstPtr = make_cudaPitchedPtr(work.out.data(), width, width, height / 8);
  box.srcPtr = volume;
  box.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3DAsync(&box, stream));
  CHECK(cudaStreamSynchronize(stream));
  work.copies += 6;
  work.look();
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(volume.ptr));
  CHECK(cudaFree(rows));
}

static void ordered(Work& work, cudaStream_t stream) {
  void *first = nullptr, *second = nullptr, *managed = nullptr;
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaMallocAsync(&first, bytes, stream));
  CHECK(cudaMallocFromPoolAsync(&second, bytes, pool, stream));
  CHECK(cudaMallocManaged(&managed, bytes));
  work.allocations += 3;
  CHECK(cudaMemcpyAsync(first, work.in.data(), bytes, cudaMemcpyHostToDevice, stream));
  void* to[] = {second, static_cast<char*>(second) + bytes / 2};
  const void* from[] = {first, first};
  size_t sizes[] = {bytes / 2, bytes / 2};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t index = 0;
  CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
  CHECK(cudaMemcpyAsync(work.out.data(), second, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaFreeAsync(first, stream));
  CHECK(cudaFreeAsync(second, stream));
  CHECK(cudaStreamSynchronize(stream));
  work.copies += 4;  // the batch has two members
  work.look();
  shared_counter += 1;
  static_cast<unsigned char*>(managed)[3] = static_cast<unsigned char>(shared_counter);
  work.seen.add(static_cast<unsigned char*>(managed)[3]);
  CHECK(cudaFree(managed));
  CHECK(cudaMemPoolDestroy(pool));
}

int main(int argc, char** argv) {
  Work work;
  cudaStream_t stream = nullptr;
  for (size_t index = 0; index < bytes; ++index) work.in[index] = static_cast<unsigned char>(index * 7 + 1);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (long round = option(argc, argv, "count", 1); round > 0; --round) {
    linear(work, stream);
    strided(work, stream);
    ordered(work, stream);
  }
  CHECK(cudaStreamDestroy(stream));
  std::printf("allocations %ld copies %ld memsets %ld checksum %016llx\n", work.allocations, work.copies, work.memsets,
              work.seen.value);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
