// Device code for the cubin tests: one kernel for each thing that the reader reports.
#include <cstdio>
__device__ int g_counter = 7;
__device__ float g_table[64];
__constant__ float c_coef[16] = {1, 2, 3};
__constant__ int c_zero[8];
__managed__ int m_val = 3;
struct Big {
  char x[40];
};
extern "C" __global__ void plain(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += c_coef[i & 15];
}
extern "C" __global__ void __launch_bounds__(256) shared_k(float* a, Big b, char c) {
  __shared__ float s[300];
  s[threadIdx.x] = a[threadIdx.x] + b.x[3];
  __syncthreads();
  a[threadIdx.x] = s[255 - threadIdx.x] + c + g_counter + c_zero[c & 7];
}
__global__ void local_k(int* a, int n) {
  int buf[200];
  for (int i = 0; i < n; i++) buf[(i * 7) % 200] = a[i];
  int s = 0;
  for (int i = 0; i < n; i++) s += buf[(a[i]) % 200];
  a[0] = s + g_table[n] + m_val;
}
extern __shared__ int dyn[];
__global__ void dyn_k(int* a) {
  dyn[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = dyn[threadIdx.x ^ 1];
  printf("%d", a[0]);
}
extern "C" __global__ void noparam() {}
struct Huge {
  char x[3000];
};
extern "C" __global__ void __launch_bounds__(128, 2) huge_k(Huge h, int* a) { a[threadIdx.x] = h.x[threadIdx.x]; }
