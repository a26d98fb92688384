#include <cuda_runtime_api.h>

#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/registry.h"

// Facts and settings of kernels, occupancy, symbols.
namespace simgpu::runtime {
namespace {

// Attributes are per device for a kernel handle: of the device that is current.
CUresult current_device(CUdevice* device) { return driver.cuCtxGetDevice(device); }

CUresult function_of(const void* symbol, CUfunction* function) {
  CUkernel kernel = nullptr;
  const CUresult result = kernel_of(symbol, &kernel);
  return result == CUDA_SUCCESS ? driver.cuKernelGetFunction(function, kernel) : result;
}

// Runs a call on the kernel behind a symbol. The name is that of the exported function, as for `run`.
template <typename Call>
cudaError_t with_kernel(const void* symbol, Call&& call, const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        CUkernel kernel = nullptr;
        const CUresult result = kernel_of(symbol, &kernel);
        return result == CUDA_SUCCESS ? call(kernel) : result;
      },
      name);
}

template <typename Call>
cudaError_t with_function(const void* symbol, Call&& call, const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        CUfunction function = nullptr;
        const CUresult result = function_of(symbol, &function);
        return result == CUDA_SUCCESS ? call(function) : result;
      },
      name);
}

int attribute(CUkernel kernel, CUfunction_attribute which, CUdevice device) {
  int value = 0;
  return driver.cuKernelGetAttribute(&value, which, kernel, device) == CUDA_SUCCESS ? value : 0;
}

CUresult attributes_of(CUkernel kernel, cudaFuncAttributes* out) {
  CUdevice device = 0;
  if (const CUresult result = current_device(&device); result != CUDA_SUCCESS) {
    return result;
  }
  const auto get = [&](CUfunction_attribute which) { return attribute(kernel, which, device); };
  *out = {};
  out->sharedSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  out->constSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  out->localSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  out->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  out->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  out->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  out->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  out->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  out->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  out->clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  out->requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  out->requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  out->requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  out->clusterSchedulingPolicyPreference = get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  out->nonPortableClusterSizeAllowed = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
  return with_kernel(symbol, [&](CUkernel kernel) { return attributes_of(kernel, attributes); });
}

extern "C" cudaError_t cudaFuncSetAttribute(const void* symbol, cudaFuncAttribute attribute, int value) {
  return with_kernel(symbol, [&](CUkernel kernel) {
    CUdevice device = 0;
    const CUresult result = current_device(&device);
    return result == CUDA_SUCCESS
               ? driver.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device)
               : result;
  });
}

extern "C" cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                                       int device) {
  return run(
      [&] { return driver.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device); });
}

extern "C" cudaError_t cudaFuncSetCacheConfig(const void* symbol, cudaFuncCache config) {
  return with_kernel(symbol, [&](CUkernel kernel) {
    CUdevice device = 0;
    const CUresult result = current_device(&device);
    return result == CUDA_SUCCESS ? driver.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config), device)
                                  : result;
  });
}

// Bank sizes are fixed on every device since 2014: accepted, without effect.
extern "C" cudaError_t cudaFuncSetSharedMemConfig(const void* symbol, cudaSharedMemConfig) {
  return with_kernel(symbol, [](CUkernel) { return CUDA_SUCCESS; });
}

extern "C" cudaError_t cudaFuncGetName(const char** name, const void* symbol) {
  return with_kernel(symbol, [&](CUkernel kernel) { return driver.cuKernelGetName(name, kernel); });
}

extern "C" cudaError_t cudaFuncGetParamInfo(const void* symbol, size_t index, size_t* offset, size_t* size) {
  return with_kernel(symbol, [&](CUkernel kernel) { return driver.cuKernelGetParamInfo(kernel, index, offset, size); });
}

extern "C" cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return run([&] { return function_of(symbol, function); });
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* symbol,
                                                                              int block_size, size_t shared_bytes,
                                                                              unsigned flags) {
  return with_function(symbol, [&](CUfunction function) {
    return driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes,
                                                                       flags);
  });
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* symbol, int block_size,
                                                                     size_t shared_bytes) {
  return with_function(symbol, [&](CUfunction function) {
    return driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
  });
}

extern "C" cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* symbol, int blocks,
                                                                 int block_size) {
  return with_function(symbol, [&](CUfunction function) {
    return driver.cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block_size);
  });
}

extern "C" cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* symbol,
                                                            const cudaLaunchConfig_t* config) {
  const CUlaunchConfig driver_launch = driver_config(*config);
  return with_function(symbol, [&](CUfunction function) {
    return driver.cuOccupancyMaxPotentialClusterSize(size, function, &driver_launch);
  });
}

extern "C" cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* symbol,
                                                      const cudaLaunchConfig_t* config) {
  const CUlaunchConfig driver_launch = driver_config(*config);
  return with_function(symbol, [&](CUfunction function) {
    return driver.cuOccupancyMaxActiveClusters(clusters, function, &driver_launch);
  });
}

extern "C" cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return run([&] { return variable_of(symbol, device_pointer_out(address), nullptr); });
}

extern "C" cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  CUdeviceptr address = 0;
  return run([&] { return variable_of(symbol, &address, size); });
}
