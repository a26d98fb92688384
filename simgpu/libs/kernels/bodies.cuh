// What the stand-ins' kernels do: nothing of use, with the instructions that kernels of their kind are made of. So a cubin says the truth
// about itself: registers follow from the tile, matrix instructions are there or not, and a reader of machine code finds what it would
// find in the vendor's library. They are never run by the simulated GPU.
#pragma once

namespace simlibs {

// As in launch.h.
struct KernelArguments {
  const void *a, *b;
  void* c;
  long long m, n, k;
};

// ------------------------------------------------------------------ one matrix instruction a warp: mma.sync
struct MmaF16 {
  using Value = float;
  static constexpr int kValues = 4;
  static __device__ void multiply(float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct MmaBf16 {
  using Value = float;
  static constexpr int kValues = 4;
  static __device__ void multiply(float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct MmaTf32 {
  using Value = float;
  static constexpr int kValues = 4;
  static __device__ void multiply(float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct MmaS8 {
  using Value = int;
  static constexpr int kValues = 4;
  static __device__ void multiply(int* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct MmaF64 {
  using Value = double;
  static constexpr int kValues = 2;
  static __device__ void multiply(double* c, const unsigned* a, const unsigned* b) {
    const double x = __hiloint2double(a[0], a[1]), y = __hiloint2double(b[0], b[1]);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(x), "d"(y));
  }
};
// Without matrix instructions.
struct Ffma {
  using Value = float;
  static constexpr int kValues = 4;
  static __device__ void multiply(float* c, const unsigned* a, const unsigned* b) {
    for (int i = 0; i < 4; ++i) c[i] = fmaf(__uint_as_float(a[i]), __uint_as_float(b[i & 1]), c[i]);
  }
};
struct Dfma {
  using Value = double;
  static constexpr int kValues = 2;
  static __device__ void multiply(double* c, const unsigned* a, const unsigned* b) {
    for (int i = 0; i < 2; ++i) c[i] = fma(__hiloint2double(a[0], a[i]), __hiloint2double(b[0], b[1]), c[i]);
  }
};

// A tile of m × n by `threads`: fills shared memory, multiplies out of it, stores.
template <typename Mma, int kTileM, int kTileN, int kThreads>
__device__ void multiply_tile(const KernelArguments& p) {
  constexpr int kAll = kTileM * kTileN / kThreads;
  constexpr int kCount = (kAll < Mma::kValues ? Mma::kValues : kAll) / Mma::kValues;
  using Value = typename Mma::Value;
  extern __shared__ unsigned shared[];
  Value sum[kCount * Mma::kValues] = {};
  const auto* a = static_cast<const unsigned*>(p.a);
  const auto* b = static_cast<const unsigned*>(p.b);
  for (long long k = 0; k < p.k; ++k) {
    shared[threadIdx.x] = a[k * p.m + threadIdx.x];
    shared[threadIdx.x + kThreads] = b[k * p.n + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      unsigned left[4], right[2];
      for (int j = 0; j < 4; ++j) left[j] = shared[(threadIdx.x ^ i) + j];
      for (int j = 0; j < 2; ++j) right[j] = shared[kThreads + (threadIdx.x ^ i) + j];
      Mma::multiply(sum + i * Mma::kValues, left, right);
    }
    __syncthreads();
  }
  auto* c = static_cast<Value*>(p.c) + blockIdx.x * static_cast<long long>(kTileM * kTileN);
#pragma unroll
  for (int i = 0; i < kCount * Mma::kValues; ++i) c[i * kThreads + threadIdx.x] = sum[i];
}

// ------------------------------------------------------------------ one instruction a warp group: wgmma (9.0)
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SIMLIBS_WGMMA(Name, suffix, scales)                                                                          \
  struct Name {                                                                                                      \
    static __device__ void multiply(float* c, unsigned long long a, unsigned long long b) {                          \
      asm volatile(                                                                                                  \
          "wgmma.mma_async.sync.aligned." suffix                                                                     \
          " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27," \
          "%28,%29,%30,%31}, %32, %33, 1, " scales ";"                                                               \
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),          \
            "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),    \
            "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),  \
            "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])   \
          : "l"(a), "l"(b));                                                                                         \
    }                                                                                                                \
  };
SIMLIBS_WGMMA(WgmmaF16, "m64n64k16.f32.f16.f16", "1, 1, 0, 0")
SIMLIBS_WGMMA(WgmmaBf16, "m64n64k16.f32.bf16.bf16", "1, 1, 0, 0")
SIMLIBS_WGMMA(WgmmaTf32, "m64n64k8.f32.tf32.tf32", "1, 1")
SIMLIBS_WGMMA(WgmmaF8, "m64n64k32.f32.e4m3.e4m3", "1, 1")
#undef SIMLIBS_WGMMA

// The first warp group fills shared memory where there are several; the others multiply.
template <typename Wgmma, int kTileM, int kTileN, int kThreads>
__device__ void multiply_tile_by_groups(const KernelArguments& p) {
  constexpr int kConsumers = kThreads > 128 ? kThreads - 128 : kThreads;
  constexpr int kAll = kTileM * kTileN / kConsumers;
  constexpr int kCount = (kAll < 32 ? 32 : kAll) / 32;
  extern __shared__ unsigned shared[];
  const auto* a = static_cast<const unsigned*>(p.a);
  const auto* b = static_cast<const unsigned*>(p.b);
  if (kThreads > 128 && threadIdx.x < 128) {
    for (long long k = 0; k < p.k; ++k) {
      shared[threadIdx.x] = a[k * p.m + threadIdx.x] ^ b[k * p.n + threadIdx.x];
      asm volatile("bar.sync 1, %0;" ::"n"(kThreads));
    }
    return;
  }
  float sum[kCount * 32] = {};
  for (long long k = 0; k < p.k; ++k) {
    if (kThreads > 128)
      asm volatile("bar.sync 1, %0;" ::"n"(kThreads));
    else
      shared[threadIdx.x] = a[k * p.m + threadIdx.x] ^ b[k * p.n + threadIdx.x];
    const unsigned long long tile = (static_cast<unsigned long long>(__cvta_generic_to_shared(shared)) & 0x3ffff) >> 4;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kCount; ++i) Wgmma::multiply(sum + i * 32, tile + i, tile + 64 + i);
    asm volatile("wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  auto* c = static_cast<float*>(p.c) + blockIdx.x * static_cast<long long>(kTileM * kTileN);
#pragma unroll
  for (int i = 0; i < kCount * 32; ++i) c[i * kConsumers + threadIdx.x % kConsumers] = sum[i];
}
#endif

// ------------------------------------------------------------------ one instruction a block: tcgen05 (10.0)
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
#define SIMLIBS_TCGEN05(Name, kind)                                                                           \
  struct Name {                                                                                               \
    static __device__ void multiply(unsigned d, unsigned long long a, unsigned long long b, unsigned shape) { \
      asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::" kind                 \
                   " [%0], %1, %2, "                                                                          \
                   "%3, p;}" ::"r"(d),                                                                        \
                   "l"(a), "l"(b), "r"(shape)                                                                 \
                   : "memory");                                                                               \
    }                                                                                                         \
  };
SIMLIBS_TCGEN05(Tcgen05F16, "f16")
SIMLIBS_TCGEN05(Tcgen05Tf32, "tf32")
SIMLIBS_TCGEN05(Tcgen05F8, "f8f6f4")
#undef SIMLIBS_TCGEN05

template <typename Mma, int kTileM, int kTileN>
__device__ void multiply_tile_in_tensor_memory(const KernelArguments& p) {
  extern __shared__ unsigned shared[];
  const unsigned room = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 256;" ::"r"(room) : "memory");
  __syncthreads();
  const unsigned sums = shared[0];
  const auto* a = static_cast<const unsigned*>(p.a);
  const auto* b = static_cast<const unsigned*>(p.b);
  for (long long k = 0; k < p.k; ++k) {
    shared[threadIdx.x] = a[k * p.m + threadIdx.x] ^ b[k * p.n + threadIdx.x];
    __syncthreads();
    const unsigned long long tile = (room & 0x3ffff) >> 4;
    if (threadIdx.x == 0) {
      for (int i = 0; i < kTileN / 64; ++i)
        Mma::multiply(sums, tile + i, tile + 64 + i, (kTileN / 8) << 17 | (kTileM / 16) << 24);
    }
  }
  unsigned values[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4]; tcgen05.wait::ld.sync.aligned;"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(sums));
  auto* c = static_cast<unsigned*>(p.c) + blockIdx.x * static_cast<long long>(kTileM * kTileN);
  for (int i = 0; i < 4; ++i) c[i * blockDim.x + threadIdx.x] = values[i];
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 256;" ::"r"(sums));
}
#endif

// ------------------------------------------------------------------ kernels that only move
// Element by element: reads two, writes one.
template <typename T>
__device__ void map_elements(const KernelArguments& p) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.n; i += step)
    static_cast<T*>(p.c)[i] = static_cast<const T*>(p.a)[i] + static_cast<const T*>(p.b)[i] * static_cast<T>(p.k);
}

// A sum a block, by warps and shared memory.
template <typename T>
__device__ void reduce_elements(const KernelArguments& p) {
  __shared__ T partial[32];
  T sum = 0;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.n; i += step)
    sum += static_cast<const T*>(p.a)[i] * static_cast<const T*>(p.b)[i];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < blockDim.x / 32) static_cast<T*>(p.c)[blockIdx.x * 32 + threadIdx.x] = partial[threadIdx.x];
}

}  // namespace simlibs

// A kernel by its exported name.
#define SIMLIBS_KERNEL(name, threads, ...) \
  extern "C" __global__ void __launch_bounds__(threads) name(simlibs::KernelArguments p) { __VA_ARGS__; }
