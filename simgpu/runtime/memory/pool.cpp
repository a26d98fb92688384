#include "simgpu/runtime/life/convert.h"

// Memory pools.
using namespace simgpu::runtime;

static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));

extern "C" cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return run([&] { return driver.cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties)); });
}

extern "C" cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return run([&] { return driver.cuMemPoolDestroy(pool); });
}

extern "C" cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return run([&] { return driver.cuMemPoolTrimTo(pool, keep); });
}

extern "C" cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return run([&] { return driver.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

extern "C" cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return run([&] { return driver.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

extern "C" cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return run([&] { return driver.cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(list), count); });
}

extern "C" cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return run([&] {
    return driver.cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                                     reinterpret_cast<CUmemLocation*>(location));
  });
}

extern "C" cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                                          cudaMemAllocationHandleType type, unsigned flags) {
  return run([&] {
    return driver.cuMemPoolExportToShareableHandle(handle, pool, static_cast<CUmemAllocationHandleType>(type),
                                                   static_cast<unsigned long long>(flags));
  });
}

extern "C" cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                            cudaMemAllocationHandleType type, unsigned flags) {
  return run([&] {
    return driver.cuMemPoolImportFromShareableHandle(pool, handle, static_cast<CUmemAllocationHandleType>(type),
                                                     static_cast<unsigned long long>(flags));
  });
}

extern "C" cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  return run([&] {
    return driver.cuMemPoolExportPointer(reinterpret_cast<CUmemPoolPtrExportData*>(data), device_pointer(pointer));
  });
}

extern "C" cudaError_t cudaMemPoolImportPointer(void** out, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
  return run([&] {
    return driver.cuMemPoolImportPointer(device_pointer_out(out), pool,
                                         reinterpret_cast<CUmemPoolPtrExportData*>(data));
  });
}

extern "C" cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return run_without_context([&] { return driver.cuDeviceGetDefaultMemPool(pool, device); });
}

extern "C" cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return run_without_context([&] { return driver.cuDeviceGetMemPool(pool, device); });
}

extern "C" cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return run_without_context([&] { return driver.cuDeviceSetMemPool(device, pool); });
}

#if CUDART_VERSION >= 13000
extern "C" cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                                cudaMemAllocationType type) {
  return run([&] {
    return driver.cuMemGetDefaultMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                         static_cast<CUmemAllocationType>(type));
  });
}

extern "C" cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return run([&] {
    return driver.cuMemGetMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                  static_cast<CUmemAllocationType>(type));
  });
}

extern "C" cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return run([&] {
    return driver.cuMemSetMemPool(reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type),
                                  pool);
  });
}
#endif

extern "C" cudaError_t cudaDeviceGraphMemTrim(int device) {
  return run_without_context([&] { return driver.cuDeviceGraphMemTrim(device); });
}

extern "C" cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return run_without_context(
      [&] { return driver.cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value); });
}

extern "C" cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return run_without_context(
      [&] { return driver.cuDeviceSetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value); });
}
