"""A CuPy program that launches one raw kernel a known number of times and checks the result."""
import cupy

axpy = cupy.RawKernel(r'''
extern "C" __global__ void counted_axpy(const float* x, float* y, float a, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}''', 'counted_axpy')
n = 4096
x, y = cupy.ones(n, dtype=cupy.float32), cupy.zeros(n, dtype=cupy.float32)
for _ in range(300):
    axpy((n // 256,), (256,), (x, y, cupy.float32(2), cupy.int32(n)))
print(float(y.sum()), float(y.max()))
