// cuMemPool*, cuMemAllocAsync, cuMemFreeAsync.
#include "simgpu/driver/memory/pool.h"

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

CUresult allocate(Call& call, CUdeviceptr* out, size_t bytes, Pool* pool, CUstream handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (pool == nullptr) pool = current_pool(*stream->context->device);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes == 0) {
    *out = 0;
    return CUDA_SUCCESS;
  }
  if (capturing(*stream)) return capture_alloc(call, *stream, *pool->device, bytes, out);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  if (pool->imported_file >= 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  const CUresult result = pool_allocate(*pool, bytes, *stream, &allocation);
  if (result != CUDA_SUCCESS) return result;
  truth_alloc(call, "alloc", allocation, stream);
  *out = allocation.address;
  return CUDA_SUCCESS;
}

CUresult free_async(Call& call, CUdeviceptr address, CUstream handle) {
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (address == 0) return CUDA_SUCCESS;
  if (capturing(*stream)) return capture_free(call, *stream, address);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->address != address || allocation->kind != MemoryKind::pool) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (is_graph_memory(*allocation)) return free_graph_memory(call, address);
  if (!remove_allocation(address)) return CUDA_ERROR_INVALID_VALUE;
  truth_alloc(call, "free", *allocation, stream);
  release_pool_allocation(*allocation, stream);
  return CUDA_SUCCESS;
}

CUresult location_device(const CUmemLocation* location, CUmemAllocationType type, Device** out) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return type == CU_MEM_ALLOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
  *out = device_at(location->id);
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult give_pool(Pool* pool, CUmemoryPool* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(pool);
  return CUDA_SUCCESS;
}

CUresult set_pool(Device* device, CUmemoryPool handle) {
  Pool* pool = live<Pool>(handle);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (pool == nullptr || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  set_current_pool(*device, pool);
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

CUresult free_pool_memory(Call& call, const Allocation& allocation) {
  if (is_graph_memory(allocation)) return free_graph_memory(call, allocation.address);
  if (!remove_allocation(allocation.address)) return CUDA_ERROR_INVALID_VALUE;
  if (Context* context = call.context()) context_wait_host(*context);
  truth_alloc(call, "free", allocation);
  release_pool_allocation(allocation, nullptr);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIM_API_PTSZ(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr * out, size_t bytes, CUstream stream),
             (out, bytes, stream)) {
  return allocate(call, out, bytes, nullptr, stream);
}

SIM_API_PTSZ(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",
             (CUdeviceptr * out, size_t bytes, CUmemoryPool handle, CUstream stream), (out, bytes, handle, stream)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return allocate(call, out, bytes, pool, stream);
}

SIM_API_PTSZ(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr address, CUstream stream), (address, stream)) {
  return free_async(call, address, stream);
}

SIM_API(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (CUmemoryPool * out, CUdevice ordinal),
        (out, ordinal)) {
  Device* device = device_at(ordinal);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : give_pool(default_pool(*device), out);
}

SIM_API(cuDeviceGetMemPool, "cuDeviceGetMemPool", (CUmemoryPool * out, CUdevice ordinal), (out, ordinal)) {
  Device* device = device_at(ordinal);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : give_pool(current_pool(*device), out);
}

SIM_API(cuDeviceSetMemPool, "cuDeviceSetMemPool", (CUdevice ordinal, CUmemoryPool pool), (ordinal, pool)) {
  return set_pool(device_at(ordinal), pool);
}

SIM_API(cuMemGetDefaultMemPool, "cuMemGetDefaultMemPool",
        (CUmemoryPool * out, CUmemLocation* location, CUmemAllocationType type), (out, location, type)) {
  Device* device = nullptr;
  const CUresult result = location_device(location, type, &device);
  return result == CUDA_SUCCESS ? give_pool(default_pool(*device), out) : result;
}

SIM_API(cuMemGetMemPool, "cuMemGetMemPool", (CUmemoryPool * out, CUmemLocation* location, CUmemAllocationType type),
        (out, location, type)) {
  Device* device = nullptr;
  const CUresult result = location_device(location, type, &device);
  return result == CUDA_SUCCESS ? give_pool(current_pool(*device), out) : result;
}

SIM_API(cuMemSetMemPool, "cuMemSetMemPool", (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
        (location, type, pool)) {
  Device* device = nullptr;
  const CUresult result = location_device(location, type, &device);
  return result == CUDA_SUCCESS ? set_pool(device, pool) : result;
}

SIM_API(cuMemPoolCreate, "cuMemPoolCreate", (CUmemoryPool * out, const CUmemPoolProps* props), (out, props)) {
  if (out == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  const CUresult result = location_device(&props->location, props->allocType, &device);
  if (result != CUDA_SUCCESS) return result;
  const auto handles = props->handleTypes;
  if (handles != CU_MEM_HANDLE_TYPE_NONE && handles != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Pool* pool = make_pool(*device, *props);
  if (pool != nullptr && looked_at(look::memory)) show_pool(call, PoolNotice::Act::created, *pool, 0);
  return give_pool(pool, out);
}

SIM_API(cuMemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool handle), (handle)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  if (looked_at(look::memory)) show_pool(call, PoolNotice::Act::destroyed, *pool, 0);
  pool_destroy(*pool);
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool handle, size_t keep), (handle, keep)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  pool_trim(*pool, keep);
  if (looked_at(look::memory)) show_pool(call, PoolNotice::Act::trimmed, *pool, keep);
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAttribute, "cuMemPoolSetAttribute",
        (CUmemoryPool handle, CUmemPool_attribute attribute, void* value), (handle, attribute, value)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto flag = [&] { return *static_cast<const int*>(value) != 0; };
  const auto number = [&] { return *static_cast<const cuuint64_t*>(value); };
  std::lock_guard lock(pool->mutex);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_event = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_dependencies = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->threshold = number();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (number() != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number() != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API(cuMemPoolGetAttribute, "cuMemPoolGetAttribute",
        (CUmemoryPool handle, CUmemPool_attribute attribute, void* value), (handle, attribute, value)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* flag = static_cast<int*>(value);
  auto* number = static_cast<cuuint64_t*>(value);
  std::lock_guard lock(pool->mutex);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *flag = pool->reuse_event;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *flag = pool->reuse_opportunistic;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *flag = pool->reuse_dependencies;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *number = pool->threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *number = pool->reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *number = pool->reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *number = pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *number = pool->used_high;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAccess, "cuMemPoolSetAccess", (CUmemoryPool handle, const CUmemAccessDesc* map, size_t count),
        (handle, map, count)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || (count != 0 && map == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(pool->mutex);
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (device_at(map[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool own = map[i].location.id == pool->device->ordinal;
    if (own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    pool->access[map[i].location.id] = map[i].flags;
  }
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolGetAccess, "cuMemPoolGetAccess",
        (CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation* location), (flags, handle, location)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (device_at(location->id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(pool->mutex);
  const auto found = pool->access.find(location->id);
  *flags = location->id == pool->device->ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found != pool->access.end()         ? found->second
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
