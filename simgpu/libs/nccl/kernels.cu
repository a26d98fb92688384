// One kernel for each operation and type, named as NCCL's: ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "simgpu/libs/kernels/bodies.cuh"

// Its parameters are ours; the name is theirs.
template <unsigned long kBytes>
struct ncclDevKernelArgsStorage : simlibs::KernelArguments {};

// Through shared memory, from one neighbour to the next.
template <typename T>
__device__ void pass_on(const simlibs::KernelArguments& p) {
  __shared__ T line[640];
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.n; i += step) {
    line[threadIdx.x] = static_cast<const T*>(p.a)[i];
    __syncthreads();
    T sum = line[(threadIdx.x + 32) % 640];
    for (long long rank = 1; rank < p.k; ++rank) sum = sum + static_cast<const T*>(p.b)[rank * p.m + i];
    static_cast<T*>(p.c)[i] = sum;
    __syncthreads();
  }
}

#define GT_NCCL_KERNEL(name, type) \
  __global__ void __launch_bounds__(640) ncclDevKernel_##name(ncclDevKernelArgsStorage<4096> p) { pass_on<type>(p); }
#define GT_NCCL_REDUCING(word, type)                   \
  GT_NCCL_KERNEL(AllReduce_Sum_##word##_RING_LL, type) \
  GT_NCCL_KERNEL(Reduce_Sum_##word##_RING_LL, type)    \
  GT_NCCL_KERNEL(ReduceScatter_Sum_##word##_RING_LL, type)

GT_NCCL_REDUCING(u8, unsigned char)
GT_NCCL_REDUCING(u32, unsigned)
GT_NCCL_REDUCING(u64, unsigned long long)
GT_NCCL_REDUCING(f16, __half)
GT_NCCL_REDUCING(f32, float)
GT_NCCL_REDUCING(f64, double)
GT_NCCL_REDUCING(bf16, __nv_bfloat16)
GT_NCCL_REDUCING(f8e4m3, unsigned char)
GT_NCCL_REDUCING(f8e5m2, unsigned char)
GT_NCCL_KERNEL(AllGather_RING_LL, unsigned long long)
GT_NCCL_KERNEL(Broadcast_RING_LL, unsigned long long)
GT_NCCL_KERNEL(SendRecv, unsigned long long)
