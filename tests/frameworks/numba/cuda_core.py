"""cuda.core: a kernel compiled by NVRTC, launched on a stream, with events and a copy, through the driver API alone."""
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

code = r'''
template <typename T>
__global__ void axpy(T a, const T* x, T* y, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
'''
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(code, code_type='c++', options=ProgramOptions(std='c++17', arch=f'sm_{device.arch}'))
module = program.compile('cubin', name_expressions=('axpy<float>', 'axpy<double>'))
n = 4096
for name, size in (('axpy<float>', 4), ('axpy<double>', 8)):
    kernel = module.get_kernel(name)
    x, y = device.allocate(n * size, stream=stream), device.allocate(n * size, stream=stream)
    a = np.float32(2) if size == 4 else np.float64(2)
    for _ in range(4):
        launch(stream, LaunchConfig(grid=n // 256, block=256), kernel, a, x, y, np.uint64(n))
    stream.sync()
    x.close(stream), y.close(stream)
print(device.name, 'done')
