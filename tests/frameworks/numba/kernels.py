"""Kernels that Numba compiles: one by one on a stream, two-dimensional, copies of arrays."""
import numpy as np
from numba import cuda
import math
@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size: out[i] = a * x[i] + y[i]
@cuda.jit
def mm(a, b, c):
    r, k = cuda.grid(2)
    if r < c.shape[0] and k < c.shape[1]:
        s = 0.0
        for j in range(a.shape[1]): s += a[r, j] * b[j, k]
        c[r, k] = s
n = 10000
x, y = cuda.to_device(np.ones(n, np.float32)), cuda.to_device(np.ones(n, np.float32))
out = cuda.device_array(n, np.float32)
s = cuda.stream()
for _ in range(5): saxpy[(n + 255) // 256, 256, s](2.0, x, y, out)
s.synchronize()
a = cuda.to_device(np.ones((64, 64))); b = cuda.to_device(np.ones((64, 64))); c = cuda.device_array((64, 64))
for _ in range(3): mm[(4, 4), (16, 16)](a, b, c)
cuda.synchronize()
print(out.copy_to_host().shape, c.copy_to_host().shape)
