// launches [count=N] [threads=T] [exit=E]: per round and thread seven launches: <<<>>> with grids, blocks and dynamic
// shared memory that change, static shared memory, a compile-time cluster, cudaLaunchKernelExC with a cluster,
// cooperative, and cudaLaunchKernel. Prints how many, and a checksum of all shapes.
#include <cooperative_groups.h>

#include <thread>
#include <vector>

#include "tests/programs/cuda_check.h"
#include "tests/programs/options.h"

__global__ void scale(float* data, float factor, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) data[index] *= factor;
}

__global__ void tiled(float* data, int count) {
  __shared__ float tile[16][16];
  tile[threadIdx.y][threadIdx.x] = data[(threadIdx.y * 16 + threadIdx.x) % count];
  __syncthreads();
  data[(threadIdx.y * 16 + threadIdx.x) % count] = tile[threadIdx.x][threadIdx.y];
}

__global__ void dynamic(float* data, int count) {
  extern __shared__ float room[];
  room[threadIdx.x] = data[threadIdx.x % count];
  __syncthreads();
  data[threadIdx.x % count] = room[blockDim.x - 1 - threadIdx.x];
}

__global__ void __cluster_dims__(2, 1, 1) clustered(float* data) {
  if (blockIdx.x == 0 && threadIdx.x == 0) data[0] += 1;
}

__global__ void cooperative(float* data) {
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) data[0] += 1;
}

struct Tally {
  long launches = 0;
  Checksum shapes;

  void launched(dim3 grid, dim3 block, unsigned shared) {
    ++launches;
    shapes.add(grid);
    shapes.add(block);
    shapes.add(shared);
  }
};

constexpr int elements = 4096;
constexpr unsigned big_shared = 96 * 1024;

static void round_of_launches(int round, float* data, cudaStream_t stream, Tally* tally) {
  const dim3 grid(1 + round % 7, 1 + round % 3, 1 + round % 2);
  const dim3 block(32 * (1 + round % 4));
  scale<<<grid, block, 0, stream>>>(data, 1.5f, elements);
  tally->launched(grid, block, 0);
  tiled<<<dim3(2, 2), dim3(16, 16), 0, stream>>>(data, elements);
  tally->launched(dim3(2, 2), dim3(16, 16), 0);
  const unsigned shared = round % 5 == 4 ? big_shared : 1024u * (1 + round % 4);
  dynamic<<<3, 64, shared, stream>>>(data, elements);
  tally->launched(3, 64, shared);
  clustered<<<4, 32, 0, stream>>>(data);
  tally->launched(4, 32, 0);

  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(128);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, scale, data, 0.5f, elements));
  tally->launched(8, 128, 0);

  void* cooperative_arguments[] = {&data};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cooperative), 2, 64, cooperative_arguments, 0, stream));
  tally->launched(2, 64, 0);
  float factor = 2;
  int count = elements;
  void* arguments[] = {&data, &factor, &count};
  CHECK(cudaLaunchKernel(reinterpret_cast<void*>(scale), dim3(5, 1, 2), 96, arguments, 0, stream));
  tally->launched(dim3(5, 1, 2), 96, 0);
}

static void run(int rounds, Tally* tally) {
  float* data = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaMalloc(&data, elements * sizeof(float)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < rounds; ++round) round_of_launches(round, data, stream, tally);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGetLastError());
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(data));
}

int main(int argc, char** argv) {
  const int rounds = static_cast<int>(option(argc, argv, "count", 10));
  std::vector<Tally> tallies(option(argc, argv, "threads", 1));
  CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, big_shared));
  std::vector<std::thread> threads;
  for (Tally& tally : tallies) threads.emplace_back(run, rounds, &tally);
  long launches = 0;
  Checksum all;
  for (std::size_t index = 0; index < threads.size(); ++index) {
    threads[index].join();
    launches += tallies[index].launches;
    all.add(tallies[index].shapes.value);
  }
  std::printf("launches %ld checksum %016llx\n", launches, all.value);
  return static_cast<int>(option(argc, argv, "exit", 0));
}
