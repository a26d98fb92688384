#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/registry.h"

// Libraries that the program loads itself. Kernels that come from them can be launched as cudaLaunchKernel's function.
using namespace simgpu::runtime;

// The option enums have the driver's numbers.
extern "C" cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options,
                                           void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                           void** values, unsigned count) {
  return run([&] {
    return driver.cuLibraryLoadData(library, code, reinterpret_cast<CUjit_option*>(jit_options), jit_values, jit_count,
                                    reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

extern "C" cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption* jit_options,
                                               void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                               void** values, unsigned count) {
  return run([&] {
    return driver.cuLibraryLoadFromFile(library, file, reinterpret_cast<CUjit_option*>(jit_options), jit_values,
                                        jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

extern "C" cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return run([&] { return driver.cuLibraryUnload(library); });
}

extern "C" cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return run([&] {
    const CUresult result = driver.cuLibraryGetKernel(kernel, library, name);
    if (result == CUDA_SUCCESS) {
      remember_kernel(*kernel);
    }
    return result;
  });
}

extern "C" cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return run([&] { return driver.cuLibraryGetKernelCount(count, library); });
}

extern "C" cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return run([&] {
    const CUresult result = driver.cuLibraryEnumerateKernels(kernels, count, library);
    for (unsigned index = 0; result == CUDA_SUCCESS && index < count; ++index) {
      remember_kernel(kernels[index]);
    }
    return result;
  });
}

extern "C" cudaError_t cudaLibraryGetGlobal(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return run([&] { return driver.cuLibraryGetGlobal(device_pointer_out(address), size, library, name); });
}

extern "C" cudaError_t cudaLibraryGetManaged(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return run([&] { return driver.cuLibraryGetManaged(device_pointer_out(address), size, library, name); });
}

extern "C" cudaError_t cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char* name) {
  return run([&] { return driver.cuLibraryGetUnifiedFunction(function, library, name); });
}
