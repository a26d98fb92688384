// What C++ makes of tensor cores and of none; calls that must be followed, and such that need not be.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>

using namespace nvcuda;

template <typename T, typename Sum>
__device__ void multiply(const T* a, const T* b, Sum* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> fc;
  wmma::fill_fragment(fc, Sum(0));
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__device__ __noinline__ void called(const half* a, const half* b, float* c) { multiply(a, b, c); }
__device__ __noinline__ double deep(double x, int n) { return n <= 0 ? x : x * deep(x * 1.5, n - 1) + 1.0; }
__device__ __noinline__ void outer(const half* a, const half* b, float* c) {
  c[300] = static_cast<float>(deep(c[0], static_cast<int>(c[1])));
  called(a, b, c);
}

__device__ __noinline__ float twice(float x) { return x + x; }
__device__ __noinline__ float square(float x) { return x * x; }
using Unary = float (*)(float);
__device__ Unary table[2] = {twice, square};

extern "C" {
__global__ void wmma_half(const half* a, const half* b, float* c) { multiply(a, b, c); }
__global__ void wmma_s8(const signed char* a, const signed char* b, int* c) { multiply(a, b, c); }
__global__ void wmma_twin(const half* a, const half* b, float* c) {
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += __half2float(a[threadIdx.x * 16 + k]) * __half2float(b[k]);
  c[threadIdx.x] = sum;
}
__global__ void calls_direct(const half* a, const half* b, float* c) { called(a, b, c); }
__global__ void calls_nested(const half* a, const half* b, float* c) { outer(a, b, c); }
__global__ void calls_table(float* c, int i) { c[0] = table[i](c[1]); }
__global__ void calls_printf(float* c) { printf("%f", c[0]); }
__global__ void half_pairs(half2* x, half2 y) { x[threadIdx.x] = __hfma2(x[threadIdx.x], y, __hadd2(y, x[1])); }
__global__ void bfloat_pairs(__nv_bfloat162* x, __nv_bfloat162 y) {
#if __CUDA_ARCH__ >= 800
  x[threadIdx.x] = __hfma2(x[threadIdx.x], y, __hfma2(y, x[1], x[2]));
#else  // no such arithmetic: by float
  x[threadIdx.x].x = __float2bfloat16(__bfloat162float(x[threadIdx.x].x) * __bfloat162float(y.x));
#endif
}
__global__ void doubles(double* x, double y) { x[threadIdx.x] = x[threadIdx.x] * y + x[1]; }
__global__ void floats(float* x, float y) { x[threadIdx.x] = x[threadIdx.x] * y + x[1]; }
__global__ void dots(int* x, int y) { x[threadIdx.x] = __dp4a(x[threadIdx.x], y, x[1]); }
}
