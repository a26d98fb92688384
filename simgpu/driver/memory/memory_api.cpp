// cuMemAlloc and its kin: device, managed and host memory.
#include <unistd.h>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

constexpr size_t kHugeRequest = size_t{1} << 46;

CUresult allocate_device(Call& call, Context& context, size_t bytes, CUdeviceptr* out) {
  void* p = device_reserve(*context.device, bytes);
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(p);
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::device;
  allocation.context = &context;
  allocation.device = context.device;
  add_allocation(allocation);
  truth_alloc(call, "alloc", allocation);
  *out = allocation.address;
  return CUDA_SUCCESS;
}

CUresult allocate_host(Call& call, Context& context, size_t bytes, MemoryKind kind, unsigned flags, uint64_t* out) {
  if (bytes > kHugeRequest) return CUDA_ERROR_OUT_OF_MEMORY;
  void* p = map_host_memory(bytes);
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(p);
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.context = &context;
  allocation.device = context.device;
  allocation.flags = flags;
  add_allocation(allocation);
  truth_alloc(call, "alloc", allocation);
  *out = allocation.address;
  return CUDA_SUCCESS;
}

// What frees memory waits for the work that may use it.
CUresult free_allocation(Call& call, uint64_t address) {
  std::optional<Allocation> allocation = remove_allocation(address);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->context != nullptr && allocation->context->active.load()) context_wait_host(*allocation->context);
  truth_alloc(call, "free", *allocation);
  give_back_memory(*allocation);
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuMemGetInfo_v2, "cuMemGetInfo", (size_t * free, size_t* total), (free, total)) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (free != nullptr) *free = device_free_bytes(*context->device);
  if (total != nullptr) *total = knobs().memory;
  return CUDA_SUCCESS;
}

SIM_API(cuMemAlloc_v2, "cuMemAlloc", (CUdeviceptr * out, size_t bytes), (out, bytes)) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  return allocate_device(call, *context, bytes, out);
}

SIM_API(cuMemAllocPitch_v2, "cuMemAllocPitch",
        (CUdeviceptr * out, size_t* pitch, size_t width, size_t height, unsigned element),
        (out, pitch, width, height, element)) {
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  if (width > kHugeRequest || height > kHugeRequest / width) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  const size_t row = (width + limits::kPitchAlignment - 1) / limits::kPitchAlignment * limits::kPitchAlignment;
  const CUresult result = allocate_device(call, *context, row * height, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

SIM_API(cuMemAllocManaged, "cuMemAllocManaged", (CUdeviceptr * out, size_t bytes, unsigned flags),
        (out, bytes, flags)) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  uint64_t address = 0;
  const CUresult result = allocate_host(call, *context, bytes, MemoryKind::managed, flags, &address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

SIM_API(cuMemFree_v2, "cuMemFree", (CUdeviceptr address), (address)) {
  if (address == 0) return CUDA_SUCCESS;
  if (call.context() == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->address != address) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->kind == MemoryKind::pool) return free_pool_memory(call, *allocation);
  if (allocation->kind != MemoryKind::device && allocation->kind != MemoryKind::managed)
    return CUDA_ERROR_INVALID_VALUE;
  return free_allocation(call, address);
}

SIM_API(cuMemAllocHost_v2, "cuMemAllocHost", (void** out, size_t bytes), (out, bytes)) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  uint64_t address = 0;
  const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  const CUresult result = allocate_host(call, *context, bytes, MemoryKind::pinned, flags, &address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return result;
}

SIM_API(cuMemHostAlloc, "cuMemHostAlloc", (void** out, size_t bytes, unsigned flags), (out, bytes, flags)) {
  if (out == nullptr || bytes == 0 || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  uint64_t address = 0;
  const unsigned kept = flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  const CUresult result = allocate_host(call, *context, bytes, MemoryKind::pinned, kept, &address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return result;
}

SIM_API(cuMemFreeHost, "cuMemFreeHost", (void* p), (p)) {
  if (p == nullptr) return CUDA_SUCCESS;
  if (call.context() == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  const auto address = reinterpret_cast<uint64_t>(p);
  const std::optional<Allocation> allocation = find_allocation(address);
  const bool ours = allocation && allocation->address == address && allocation->kind == MemoryKind::pinned;
  if (!ours || allocation->registered) return CUDA_ERROR_INVALID_VALUE;
  return free_allocation(call, address);
}

SIM_API(cuMemHostRegister_v2, "cuMemHostRegister", (void* p, size_t bytes, unsigned flags), (p, bytes, flags)) {
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                              CU_MEMHOSTREGISTER_READ_ONLY;
  if (p == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_PERMITTED;
  const auto address = reinterpret_cast<uint64_t>(p);
  if (find_allocation(address) || find_allocation(address + bytes - 1))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Allocation allocation;
  allocation.address = address;
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::pinned;
  allocation.context = context;
  allocation.device = context->device;
  allocation.flags = flags;
  allocation.registered = true;
  add_allocation(allocation);
  truth_alloc(call, "alloc", allocation);
  return CUDA_SUCCESS;
}
SIM_ALIAS(cuMemHostRegister, cuMemHostRegister_v2, "cuMemHostRegister", (void* p, size_t bytes, unsigned flags),
          (p, bytes, flags))

SIM_API(cuMemHostUnregister, "cuMemHostUnregister", (void* p), (p)) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  const auto address = reinterpret_cast<uint64_t>(p);
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->address != address || !allocation->registered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  return free_allocation(call, address);
}

SIM_API(cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", (CUdeviceptr * out, void* p, unsigned flags),
        (out, p, flags)) {
  if (out == nullptr || p == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  const std::optional<Allocation> allocation = find_allocation(reinterpret_cast<uint64_t>(p));
  if (!allocation || allocation->kind != MemoryKind::pinned) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags, "cuMemHostGetFlags", (unsigned* flags, void* p), (flags, p)) {
  if (flags == nullptr || p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  const std::optional<Allocation> allocation = find_allocation(reinterpret_cast<uint64_t>(p));
  if (!allocation || allocation->kind != MemoryKind::pinned) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation->flags;
  return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange_v2, "cuMemGetAddressRange", (CUdeviceptr * base, size_t* bytes, CUdeviceptr address),
        (base, bytes, address)) {
  if (call.context() == nullptr) return call.context_error();
  if (base == nullptr && bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation->address;
  if (bytes != nullptr) *bytes = allocation->bytes;
  return CUDA_SUCCESS;
}
