// The kernels of gemm_kernels.def, and the sum of a product that was split along k.
#include "simgpu/libs/kernels/maths.cuh"

#define GT_JOIN(a, b, c) a##b##c
#define GT_GEMM_KERNEL(before, after, generation, math, m, n, threads, shared, cluster_x, cluster_y) \
  GT_LAYOUTS_##generation(before, after, generation, math, m, n, threads)
#define GT_LAYOUTS_80(before, after, ...)                        \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, nn, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, nt, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, tn, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, tt, after), __VA_ARGS__)
// cuBLASLt's newest kernels spell the layout in capitals.
#define GT_LAYOUTS_90(before, after, generation, math, ...) \
  GT_LAYOUTS_90_##math(before, after, generation, math, __VA_ARGS__)
#define GT_LAYOUTS_90_Tf32 GT_LAYOUTS_80
#define GT_LAYOUTS_90_Bf16 GT_LAYOUTS_100
#define GT_LAYOUTS_90_F16 GT_LAYOUTS_100
#define GT_LAYOUTS_90_F8 GT_LAYOUTS_100
#define GT_LAYOUTS_100(before, after, ...)                       \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, NN, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, NT, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, TN, after), __VA_ARGS__) \
  GT_MULTIPLYING_KERNEL(GT_JOIN(before, TT, after), __VA_ARGS__)
#include "simgpu/libs/gemm/gemm_kernels.def"

// void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(void const*, void*)
SIMLIBS_KERNEL(_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1ELb0ELb0EEEvPKvPv, 512,
               simlibs::reduce_elements<float>(p))
// void cublasLt::transformKernel<float>(void const*, long)
SIMLIBS_KERNEL(_ZN8cublasLt15transformKernelIfEEvPKvl, 256, simlibs::map_elements<float>(p))
