// The kernels of gemm_kernels.def, and the sum of a product that was split along k.
#include "simgpu/libs/kernels/bodies.cuh"

#define GT_JOIN(a, b, c) a##b##c
// What multiplies, by generation and math: tile sizes, threads.
#define GT_BODY_80_F32(...) simlibs::multiply_tile<simlibs::Ffma, __VA_ARGS__>(p)
#define GT_BODY_80_Tf32(...) simlibs::multiply_tile<simlibs::MmaTf32, __VA_ARGS__>(p)
#define GT_BODY_80_Bf16(...) simlibs::multiply_tile<simlibs::MmaBf16, __VA_ARGS__>(p)
#define GT_BODY_80_F16(...) simlibs::multiply_tile<simlibs::MmaF16, __VA_ARGS__>(p)
#define GT_BODY_80_F64(...) simlibs::multiply_tile<simlibs::MmaF64, __VA_ARGS__>(p)
#define GT_BODY_80_S8(...) simlibs::multiply_tile<simlibs::MmaS8, __VA_ARGS__>(p)
#define GT_BODY_80_C32(m, n, threads) simlibs::multiply_tile<simlibs::Ffma, m, 2 * n, threads>(p)
#define GT_BODY_80_C64(m, n, threads) simlibs::multiply_tile<simlibs::Dfma, m, 2 * n, threads>(p)
#define GT_BODY_90_Tf32(...) simlibs::multiply_tile_by_groups<simlibs::WgmmaTf32, __VA_ARGS__>(p)
#define GT_BODY_90_Bf16(...) simlibs::multiply_tile_by_groups<simlibs::WgmmaBf16, __VA_ARGS__>(p)
#define GT_BODY_90_F16(...) simlibs::multiply_tile_by_groups<simlibs::WgmmaF16, __VA_ARGS__>(p)
#define GT_BODY_90_F8(...) simlibs::multiply_tile_by_groups<simlibs::WgmmaF8, __VA_ARGS__>(p)
#define GT_BODY_100_Tf32(m, n, threads) simlibs::multiply_tile_in_tensor_memory<simlibs::Tcgen05Tf32, m, n>(p)
#define GT_BODY_100_Bf16(m, n, threads) simlibs::multiply_tile_in_tensor_memory<simlibs::Tcgen05F16, m, n>(p)
#define GT_BODY_100_F16(m, n, threads) simlibs::multiply_tile_in_tensor_memory<simlibs::Tcgen05F16, m, n>(p)
#define GT_BODY_100_F8(m, n, threads) simlibs::multiply_tile_in_tensor_memory<simlibs::Tcgen05F8, m, n>(p)

// A generation's own kernels are in its own image alone.
#define GT_IF_80(...) __VA_ARGS__
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GT_IF_90(...) __VA_ARGS__
#else
#define GT_IF_90(...)
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
#define GT_IF_100(...) __VA_ARGS__
#else
#define GT_IF_100(...)
#endif

#define GT_ONE(name, generation, math, m, n, threads) \
  GT_IF_##generation(SIMLIBS_KERNEL(name, threads, GT_BODY_##generation##_##math(m, n, threads)))
#define GT_GEMM_KERNEL(before, after, generation, math, m, n, threads, shared, cluster_x, cluster_y) \
  GT_LAYOUTS_##generation(before, after, generation, math, m, n, threads)
#define GT_LAYOUTS_80(before, after, ...)          \
  GT_ONE(GT_JOIN(before, nn, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, nt, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, tn, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, tt, after), __VA_ARGS__)
// cuBLASLt's newest kernels spell the layout in capitals.
#define GT_LAYOUTS_90(before, after, generation, math, ...) GT_LAYOUTS_90_##math(before, after, generation, math, __VA_ARGS__)
#define GT_LAYOUTS_90_Tf32 GT_LAYOUTS_80
#define GT_LAYOUTS_90_Bf16 GT_LAYOUTS_100
#define GT_LAYOUTS_90_F16 GT_LAYOUTS_100
#define GT_LAYOUTS_90_F8 GT_LAYOUTS_100
#define GT_LAYOUTS_100(before, after, ...)         \
  GT_ONE(GT_JOIN(before, NN, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, NT, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, TN, after), __VA_ARGS__) \
  GT_ONE(GT_JOIN(before, TT, after), __VA_ARGS__)
#include "simgpu/libs/gemm/gemm_kernels.def"

// void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(void const*, void*)
SIMLIBS_KERNEL(_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1ELb0ELb0EEEvPKvPv, 512, simlibs::reduce_elements<float>(p))
// void cublasLt::transformKernel<float>(void const*, long)
SIMLIBS_KERNEL(_ZN8cublasLt15transformKernelIfEEvPKvl, 256, simlibs::map_elements<float>(p))
