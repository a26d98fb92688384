// A runtime that does nothing but hand a launch to the driver, as the shared libcudart does: each launch is two traced calls,
// one within the other.
#include <cuda.h>
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                                    size_t shared, cudaStream_t stream) {
  return (cudaError_t)cuLaunchKernel((CUfunction)function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
                                     stream, arguments, 0);
}
