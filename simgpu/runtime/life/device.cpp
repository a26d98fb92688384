#include <cuda_runtime_api.h>

#include <cstring>

#include "simgpu/runtime/life/core.h"
#include "simgpu/runtime/life/streamed.h"

// Devices: choice, facts, limits, peers, reset; versions, driver entry points, profiler control.
namespace simgpu::runtime {
namespace {

// Attributes as they are called in cudaDeviceProp. Units there are the driver's own.
struct IntProperty {
  CUdevice_attribute attribute;
  int cudaDeviceProp::*field;
};

constexpr IntProperty int_properties[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &cudaDeviceProp::regsPerBlock},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &cudaDeviceProp::warpSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaDeviceProp::maxThreadsPerBlock},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &cudaDeviceProp::major},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &cudaDeviceProp::minor},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &cudaDeviceProp::multiProcessorCount},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, &cudaDeviceProp::integrated},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &cudaDeviceProp::canMapHostMemory},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, &cudaDeviceProp::maxTexture1D},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, &cudaDeviceProp::maxTexture1DMipmap},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, &cudaDeviceProp::maxTextureCubemap},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, &cudaDeviceProp::maxSurface1D},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, &cudaDeviceProp::maxSurfaceCubemap},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &cudaDeviceProp::concurrentKernels},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, &cudaDeviceProp::ECCEnabled},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &cudaDeviceProp::pciBusID},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &cudaDeviceProp::pciDeviceID},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &cudaDeviceProp::pciDomainID},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, &cudaDeviceProp::tccDriver},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &cudaDeviceProp::asyncEngineCount},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &cudaDeviceProp::unifiedAddressing},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &cudaDeviceProp::memoryBusWidth},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cudaDeviceProp::l2CacheSize},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, &cudaDeviceProp::persistingL2CacheMaxSize},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &cudaDeviceProp::maxThreadsPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, &cudaDeviceProp::streamPrioritiesSupported},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, &cudaDeviceProp::globalL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, &cudaDeviceProp::localL1CacheSupported},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &cudaDeviceProp::regsPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &cudaDeviceProp::managedMemory},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, &cudaDeviceProp::isMultiGpuBoard},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, &cudaDeviceProp::multiGpuBoardGroupID},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, &cudaDeviceProp::hostNativeAtomicSupported},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &cudaDeviceProp::pageableMemoryAccess},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &cudaDeviceProp::concurrentManagedAccess},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, &cudaDeviceProp::computePreemptionSupported},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, &cudaDeviceProp::canUseHostPointerForRegisteredMem},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cudaDeviceProp::cooperativeLaunch},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
     &cudaDeviceProp::pageableMemoryAccessUsesHostPageTables},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, &cudaDeviceProp::directManagedMemAccessFromHost},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &cudaDeviceProp::maxBlocksPerMultiProcessor},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, &cudaDeviceProp::accessPolicyMaxWindowSize},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &cudaDeviceProp::hostRegisterSupported},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &cudaDeviceProp::sparseCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &cudaDeviceProp::hostRegisterReadOnlySupported},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &cudaDeviceProp::timelineSemaphoreInteropSupported},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &cudaDeviceProp::memoryPoolsSupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, &cudaDeviceProp::gpuDirectRDMASupported},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, &cudaDeviceProp::gpuDirectRDMAWritesOrdering},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &cudaDeviceProp::deferredMappingCudaArraySupported},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, &cudaDeviceProp::ipcEventSupported},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &cudaDeviceProp::clusterLaunch},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, &cudaDeviceProp::unifiedFunctionPointers},
#if CUDART_VERSION >= 13000
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, &cudaDeviceProp::deviceNumaConfig},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, &cudaDeviceProp::deviceNumaId},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, &cudaDeviceProp::mpsEnabled},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &cudaDeviceProp::hostNumaId},
#else
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &cudaDeviceProp::clockRate},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, &cudaDeviceProp::deviceOverlap},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, &cudaDeviceProp::kernelExecTimeoutEnabled},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &cudaDeviceProp::computeMode},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &cudaDeviceProp::maxTexture1DLinear},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &cudaDeviceProp::memoryClockRate},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, &cudaDeviceProp::singleToDoublePrecisionPerfRatio},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, &cudaDeviceProp::cooperativeMultiDeviceLaunch},
#endif
};

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

void fill_sizes(CUdevice device, cudaDeviceProp* out) {
  const auto bytes = [&](CUdevice_attribute which) { return static_cast<std::size_t>(attribute(device, which)); };
  out->sharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  out->memPitch = bytes(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  out->totalConstMem = bytes(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  out->textureAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  out->texturePitchAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  out->surfaceAlignment = bytes(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  out->sharedMemPerMultiprocessor = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out->sharedMemPerBlockOptin = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out->reservedSharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
}

void fill_dimensions(CUdevice device, cudaDeviceProp* out) {
  constexpr CUdevice_attribute block[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                          CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  constexpr CUdevice_attribute grid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                         CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  constexpr CUdevice_attribute volume[] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
                                           CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                                           CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH};
  for (int axis = 0; axis < 3; ++axis) {
    out->maxThreadsDim[axis] = attribute(device, block[axis]);
    out->maxGridSize[axis] = attribute(device, grid[axis]);
    out->maxTexture3D[axis] = attribute(device, volume[axis]);
  }
  out->maxTexture2D[0] = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH);
  out->maxTexture2D[1] = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
}

CUresult properties(cudaDeviceProp* out, int device) {
  CUresult result = CUDA_SUCCESS;
  *out = {};
  if (result = driver.cuDeviceGetName(out->name, static_cast<int>(sizeof out->name), device); result != CUDA_SUCCESS) {
    return result;
  }
  static_cast<void>(driver.cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&out->uuid), device));
  if (result = driver.cuDeviceTotalMem(&out->totalGlobalMem, device); result != CUDA_SUCCESS) {
    return result;
  }
  for (const IntProperty& property : int_properties) {
    out->*property.field = attribute(device, property.attribute);
  }
  fill_sizes(device, out);
  fill_dimensions(device, out);
  out->gpuDirectRDMAFlushWritesOptions =
      static_cast<unsigned>(attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
  out->memoryPoolSupportedHandleTypes =
      static_cast<unsigned>(attribute(device, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES));
  return CUDA_SUCCESS;
}

CUresult device_of_thread(int* out) {
  CUdevice device = 0;
  if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) {
    *out = device;
    return CUDA_SUCCESS;
  }
  *out = thread_state().device;
  return CUDA_SUCCESS;
}

cudaError_t entry_point(Mode mode, const char* symbol, void** function, int version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status) {
  return run_without_context([&] {
    const cuuint64_t wanted = flags == cudaEnableDefault && mode == Mode::per_thread
                                  ? static_cast<cuuint64_t>(cudaEnablePerThreadDefaultStream)
                                  : static_cast<cuuint64_t>(flags);
    return find_driver_entry(symbol, function, version, wanted,
                             reinterpret_cast<CUdriverProcAddressQueryResult*>(status));
  });
}

}  // namespace

cudaError_t streamed::cudaGetDriverEntryPoint(Mode mode, const char* symbol, void** function, unsigned long long flags,
                                              cudaDriverEntryPointQueryResult* status) {
  return entry_point(mode, symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t streamed::cudaGetDriverEntryPointByVersion(Mode mode, const char* symbol, void** function, unsigned version,
                                                       unsigned long long flags,
                                                       cudaDriverEntryPointQueryResult* status) {
  return entry_point(mode, symbol, function, static_cast<int>(version), flags, status);
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return run_without_context([&] {
    const CUresult result = driver.cuDeviceGetCount(count);
    return result == CUDA_SUCCESS && *count == 0 ? CUDA_ERROR_NO_DEVICE : result;
  });
}

extern "C" cudaError_t cudaSetDevice(int device) {
  return run_without_context([&] { return select_device(device); });
}

extern "C" cudaError_t cudaInitDevice(int device, unsigned flags, unsigned which) {
  return run_without_context([&] {
    if ((which & cudaInitDeviceFlagsAreValid) != 0) {
      static_cast<void>(driver.cuDevicePrimaryCtxSetFlags(device, flags));
    }
    CUcontext context = nullptr;
    return primary_context(device, &context);
  });
}

extern "C" cudaError_t cudaGetDevice(int* device) {
  return run_without_context([&] { return device_of_thread(device); });
}

extern "C" cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return run_without_context([&] { return driver.cuDevicePrimaryCtxSetFlags(thread_state().device, flags); });
}

extern "C" cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return run_without_context([&] {
    int active = 0;
    return driver.cuDevicePrimaryCtxGetState(thread_state().device, flags, &active);
  });
}

extern "C" cudaError_t cudaSetValidDevices(int* devices, int count) {
  return run_without_context([&] {
    return count > 0 && devices != nullptr ? (thread_state().device = devices[0], CUDA_SUCCESS) : CUDA_SUCCESS;
  });
}

extern "C" cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return run_without_context([&] { return *device = 0, CUDA_SUCCESS; });
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return run_without_context([&] { return properties(out, device); });
}

extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return run_without_context(
      [&] { return driver.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device); });
}

extern "C" cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus_id) {
  return run_without_context([&] { return driver.cuDeviceGetByPCIBusId(device, bus_id); });
}

extern "C" cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int device) {
  return run_without_context([&] { return driver.cuDeviceGetPCIBusId(out, length, device); });
}

extern "C" cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr which, int from, int to) {
  return run_without_context(
      [&] { return driver.cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(which), from, to); });
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return run_without_context([&] { return driver.cuDeviceCanAccessPeer(can, device, peer); });
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return run([&] {
    CUcontext context = nullptr;
    const CUresult result = primary_context(peer, &context);
    return result == CUDA_SUCCESS ? driver.cuCtxEnablePeerAccess(context, flags) : result;
  });
}

extern "C" cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return run([&] {
    CUcontext context = nullptr;
    const CUresult result = primary_context(peer, &context);
    return result == CUDA_SUCCESS ? driver.cuCtxDisablePeerAccess(context) : result;
  });
}

extern "C" cudaError_t cudaDeviceReset() {
  return run_without_context([] { return reset_device(); });
}

extern "C" cudaError_t cudaDeviceSynchronize() {
  return run([] { return driver.cuCtxSynchronize(); });
}

extern "C" cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return run([&] { return driver.cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

extern "C" cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return run([&] { return driver.cuCtxGetLimit(value, static_cast<CUlimit>(limit)); });
}

extern "C" cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return run([&] { return driver.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)); });
}

extern "C" cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return run([&] { return driver.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)); });
}

extern "C" cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return run([&] { return driver.cuCtxGetSharedMemConfig(reinterpret_cast<CUsharedconfig*>(config)); });
}

extern "C" cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return run([&] { return driver.cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(config)); });
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return run([&] { return driver.cuCtxGetStreamPriorityRange(least, greatest); });
}

extern "C" cudaError_t cudaCtxResetPersistingL2Cache() {
  return run([] { return driver.cuCtxResetPersistingL2Cache(); });
}

extern "C" cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                                          cudaFlushGPUDirectRDMAWritesScope scope) {
  return run([&] {
    return driver.cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                             static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
  });
}

extern "C" cudaError_t cudaDriverGetVersion(int* version) {
  if (!driver_present()) {  // documented: 0, and no error
    *version = 0;
    return cudaSuccess;
  }
  const CUresult result = driver.cuDriverGetVersion(version);
  return result == CUDA_SUCCESS ? cudaSuccess : record(result);
}

extern "C" cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

extern "C" cudaError_t cudaProfilerStart() {
  return run([] { return driver.cuProfilerStart(); });
}

extern "C" cudaError_t cudaProfilerStop() {
  return run([] { return driver.cuProfilerStop(); });
}
