// What multiplies a tile, by generation and arithmetic, for tables of kernels: GT_BODY_<generation>_<math>(tile m, tile n, threads), and
// GT_IF_<generation>(…), which leaves a generation's own kernels out of the other images.
#pragma once

#include "simgpu/libs/kernels/bodies.cuh"

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

#define GT_MULTIPLYING_KERNEL(name, generation, math, m, n, threads) \
  GT_IF_##generation(SIMLIBS_KERNEL(name, threads, GT_BODY_##generation##_##math(m, n, threads)))
