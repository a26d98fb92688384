// Kernels named as cuFFT's are in public traces: one template, by size of the transform, elements a thread, threads a transform.
#include <cuda_fp16.h>

#include "simgpu/libs/kernels/bodies.cuh"

enum padding_t : int {};
enum twiddle_t : int {};
enum loadstore_modifier_t : int {};
enum layout_t : int {};

template <typename Index>
struct kernel_arguments_t : simlibs::KernelArguments {};

// Radix-2 butterflies of a line in shared memory.
template <typename Real>
__device__ void transform_line(const simlibs::KernelArguments& p) {
  __shared__ Real line[2 * 512];
  line[threadIdx.x] = static_cast<const Real*>(p.a)[blockIdx.x * blockDim.x + threadIdx.x];
  line[threadIdx.x + 512] = static_cast<const Real*>(p.a)[(blockIdx.x + gridDim.x) * blockDim.x + threadIdx.x];
  for (unsigned half = 1; half < static_cast<unsigned>(p.n); half *= 2) {
    __syncthreads();
    const Real a = line[threadIdx.x], b = line[(threadIdx.x ^ half) % 512 + 512];
    __syncthreads();
    line[threadIdx.x] = a + b;
    line[threadIdx.x + 512] = a - b;
  }
  static_cast<Real*>(p.c)[blockIdx.x * blockDim.x + threadIdx.x] = line[threadIdx.x] + line[threadIdx.x + 512];
}

template <unsigned kSize, unsigned kElements, unsigned kThreads, padding_t, twiddle_t, loadstore_modifier_t, layout_t,
          typename Index, typename Real>
__global__ void __launch_bounds__(512) vector_fft(kernel_arguments_t<Index> p) {
  transform_line<Real>(p);
}
// Sizes with other factors than two.
template <unsigned kFactors, unsigned kElements, unsigned kThreads, padding_t, twiddle_t, loadstore_modifier_t,
          layout_t, typename Index, typename Real>
__global__ void __launch_bounds__(512) regular_fft(kernel_arguments_t<Index> p) {
  transform_line<Real>(p);
}

#define GT_FFT(name, size, Real)                                                                              \
  template __global__ void name<size, 8, 4, padding_t(1), twiddle_t(0), loadstore_modifier_t(2), layout_t(0), \
                                unsigned, Real>(kernel_arguments_t<unsigned>);
#define GT_FFTS(Real)            \
  GT_FFT(vector_fft, 16, Real)   \
  GT_FFT(vector_fft, 32, Real)   \
  GT_FFT(vector_fft, 64, Real)   \
  GT_FFT(vector_fft, 128, Real)  \
  GT_FFT(vector_fft, 256, Real)  \
  GT_FFT(vector_fft, 512, Real)  \
  GT_FFT(vector_fft, 1024, Real) \
  GT_FFT(vector_fft, 2048, Real) \
  GT_FFT(vector_fft, 4096, Real) \
  GT_FFT(regular_fft, 3, Real)
GT_FFTS(float)
GT_FFTS(double)
GT_FFTS(__half)
