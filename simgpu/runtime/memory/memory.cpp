#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/majors.h"
#include "simgpu/runtime/life/streamed.h"

// Allocation, memsets, pointer facts, managed memory hints, IPC.
namespace simgpu::runtime {
namespace {

CUmemLocation driver_location(const cudaMemLocation& location) {
  CUmemLocation made{};
  made.type = static_cast<CUmemLocationType>(location.type);
  made.id = location.id;
  return made;
}

cudaMemoryType memory_type(unsigned driver_type, bool managed) {
  if (managed) {
    return cudaMemoryTypeManaged;
  }
  switch (driver_type) {
    case CU_MEMORYTYPE_HOST:
      return cudaMemoryTypeHost;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_ARRAY:
    case CU_MEMORYTYPE_UNIFIED:
      return cudaMemoryTypeDevice;
    default:
      return cudaMemoryTypeUnregistered;
  }
}

CUresult pointer_attributes(cudaPointerAttributes* out, const void* pointer) {
  unsigned type = 0;
  int managed = 0;
  int ordinal = -1;
  void* device = nullptr;
  void* host = nullptr;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &ordinal, &device, &host};
  if (const CUresult result = driver.cuPointerGetAttributes(5u, which, values, device_pointer(pointer));
      result != CUDA_SUCCESS) {
    return result;
  }
  *out = {};
  out->type = memory_type(type, managed != 0);
  if (out->type == cudaMemoryTypeUnregistered) {
    out->device = cudaInvalidDeviceId;
    out->hostPointer = const_cast<void*>(pointer);
    return CUDA_SUCCESS;
  }
  out->device = ordinal;
  out->devicePointer = device;
  out->hostPointer = host;
  return CUDA_SUCCESS;
}

CUresult fill_3d(Mode mode, const cudaPitchedPtr& target, int value, const cudaExtent& extent, bool async,
                 cudaStream_t stream) {
  const auto byte = static_cast<unsigned char>(value);
  for (std::size_t z = 0; z < extent.depth; ++z) {
    const CUdeviceptr slice = device_pointer(target.ptr) + z * target.pitch * target.ysize;
    const CUresult result =
        async ? driver.cuMemsetD2D8Async(mode, slice, target.pitch, byte, extent.width, extent.height, stream)
              : driver.cuMemsetD2D8(mode, slice, target.pitch, byte, extent.width, extent.height);
    if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

cudaError_t streamed::cudaMallocAsync(Mode mode, void** out, size_t size, cudaStream_t stream) {
  return run([&] { return driver.cuMemAllocAsync(mode, device_pointer_out(out), size, stream); });
}

cudaError_t streamed::cudaMallocFromPoolAsync(Mode mode, void** out, size_t size, cudaMemPool_t pool,
                                              cudaStream_t stream) {
  return run([&] { return driver.cuMemAllocFromPoolAsync(mode, device_pointer_out(out), size, pool, stream); });
}

cudaError_t streamed::cudaFreeAsync(Mode mode, void* pointer, cudaStream_t stream) {
  return run([&] { return driver.cuMemFreeAsync(mode, device_pointer(pointer), stream); });
}

cudaError_t streamed::cudaMemset(Mode mode, void* target, int value, size_t count) {
  return run([&] { return driver.cuMemsetD8(mode, device_pointer(target), static_cast<unsigned char>(value), count); });
}

cudaError_t streamed::cudaMemsetAsync(Mode mode, void* target, int value, size_t count, cudaStream_t stream) {
  return run([&] {
    return driver.cuMemsetD8Async(mode, device_pointer(target), static_cast<unsigned char>(value), count, stream);
  });
}

cudaError_t streamed::cudaMemset2D(Mode mode, void* target, size_t pitch, int value, size_t width, size_t height) {
  return run([&] {
    return driver.cuMemsetD2D8(mode, device_pointer(target), pitch, static_cast<unsigned char>(value), width, height);
  });
}

cudaError_t streamed::cudaMemset2DAsync(Mode mode, void* target, size_t pitch, int value, size_t width, size_t height,
                                        cudaStream_t stream) {
  return run([&] {
    return driver.cuMemsetD2D8Async(mode, device_pointer(target), pitch, static_cast<unsigned char>(value), width,
                                    height, stream);
  });
}

cudaError_t streamed::cudaMemset3D(Mode mode, cudaPitchedPtr target, int value, cudaExtent extent) {
  return run([&] { return fill_3d(mode, target, value, extent, false, nullptr); });
}

cudaError_t streamed::cudaMemset3DAsync(Mode mode, cudaPitchedPtr target, int value, cudaExtent extent,
                                        cudaStream_t stream) {
  return run([&] { return fill_3d(mode, target, value, extent, true, stream); });
}

cudaError_t streamed::GT_NAME(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2)(Mode mode, const void* pointer,
                                                                             size_t count, cudaMemLocation location,
                                                                             unsigned flags, cudaStream_t stream) {
  return run([&] {
    return driver.cuMemPrefetchAsync(mode, device_pointer(pointer), count, driver_location(location), flags, stream);
  });
}

#if CUDART_VERSION >= 13000
cudaError_t streamed::cudaMemPrefetchBatchAsync(Mode mode, void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* location_indices,
                                                size_t location_count, unsigned long long flags, cudaStream_t stream) {
  return run([&] {
    return driver.cuMemPrefetchBatchAsync(mode, device_pointer_out(pointers), sizes, count,
                                          reinterpret_cast<CUmemLocation*>(locations), location_indices, location_count,
                                          flags, stream);
  });
}

cudaError_t streamed::cudaMemDiscardBatchAsync(Mode mode, void** pointers, size_t* sizes, size_t count,
                                               unsigned long long flags, cudaStream_t stream) {
  return run(
      [&] { return driver.cuMemDiscardBatchAsync(mode, device_pointer_out(pointers), sizes, count, flags, stream); });
}

cudaError_t streamed::cudaMemDiscardAndPrefetchBatchAsync(Mode mode, void** pointers, size_t* sizes, size_t count,
                                                          cudaMemLocation* locations, size_t* location_indices,
                                                          size_t location_count, unsigned long long flags,
                                                          cudaStream_t stream) {
  return run([&] {
    return driver.cuMemDiscardAndPrefetchBatchAsync(mode, device_pointer_out(pointers), sizes, count,
                                                    reinterpret_cast<CUmemLocation*>(locations), location_indices,
                                                    location_count, flags, stream);
  });
}
#endif

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaMalloc(void** out, size_t size) {
  if (out == nullptr) {
    return record(cudaErrorInvalidValue);
  }
  if (size == 0) {  // documented: success and a null pointer
    *out = nullptr;
    return run([] { return CUDA_SUCCESS; });
  }
  return run([&] { return driver.cuMemAlloc(device_pointer_out(out), size); });
}

extern "C" cudaError_t cudaFree(void* pointer) {
  return run([&] { return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFree(device_pointer(pointer)); });
}

extern "C" cudaError_t cudaHostAlloc(void** out, size_t size, unsigned flags) {
  return run([&] { return driver.cuMemHostAlloc(out, size, flags); });
}

extern "C" cudaError_t cudaMallocHost(void** out, size_t size) {
  return as_itself([&] { return cudaHostAlloc(out, size, 0); });
}

extern "C" cudaError_t cudaFreeHost(void* pointer) {
  return run([&] { return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFreeHost(pointer); });
}

extern "C" cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  return run([&] { return driver.cuMemHostRegister(pointer, size, flags); });
}

extern "C" cudaError_t cudaHostUnregister(void* pointer) {
  return run([&] { return driver.cuMemHostUnregister(pointer); });
}

extern "C" cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned flags) {
  return run([&] { return driver.cuMemHostGetDevicePointer(device_pointer_out(out), host, flags); });
}

extern "C" cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return run([&] { return driver.cuMemHostGetFlags(flags, host); });
}

extern "C" cudaError_t cudaMallocManaged(void** out, size_t size, unsigned flags) {
  return run([&] { return driver.cuMemAllocManaged(device_pointer_out(out), size, flags); });
}

extern "C" cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return run([&] { return driver.cuMemAllocPitch(device_pointer_out(out), pitch, width, height, 4u); });
}

extern "C" cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
  void* pointer = nullptr;
  size_t pitch = 0;
  const cudaError_t error = cudaMallocPitch(&pointer, &pitch, extent.width, extent.height * extent.depth);
  if (error == cudaSuccess) {
    *out = {pointer, pitch, extent.width, extent.height};
  }
  return error;
}

extern "C" cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return run([&] { return driver.cuMemGetInfo(free, total); });
}

extern "C" cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return run([&] { return pointer_attributes(attributes, pointer); });
}

extern "C" cudaError_t GT_NAME(cudaMemAdvise, cudaMemAdvise_v2)(const void* pointer, size_t count,
                                                                cudaMemoryAdvise advice, cudaMemLocation location) {
  return run([&] {
    return driver.cuMemAdvise(device_pointer(pointer), count, static_cast<CUmem_advise>(advice),
                              driver_location(location));
  });
}

extern "C" cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                                const void* pointer, size_t count) {
  return run([&] {
    return driver.cuMemRangeGetAttribute(data, size, static_cast<CUmem_range_attribute>(attribute),
                                         device_pointer(pointer), count);
  });
}

extern "C" cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes,
                                                 size_t attribute_count, const void* pointer, size_t count) {
  return run([&] {
    return driver.cuMemRangeGetAttributes(data, sizes, reinterpret_cast<CUmem_range_attribute*>(attributes),
                                          attribute_count, device_pointer(pointer), count);
  });
}

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

extern "C" cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return run(
      [&] { return driver.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), device_pointer(pointer)); });
}

extern "C" cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t handle, unsigned flags) {
  return run([&] {
    return driver.cuIpcOpenMemHandle(device_pointer_out(out), reinterpret_cast<const CUipcMemHandle&>(handle), flags);
  });
}

extern "C" cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return run([&] { return driver.cuIpcCloseMemHandle(device_pointer(pointer)); });
}

extern "C" cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return run([&] { return driver.cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event); });
}

extern "C" cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return run([&] { return driver.cuIpcOpenEventHandle(event, reinterpret_cast<const CUipcEventHandle&>(handle)); });
}
