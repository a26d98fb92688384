// cuMemAddressReserve, cuMemCreate, cuMemMap and what belongs to them.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/vmm.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

constexpr size_t kMaxReserve = size_t{1} << 46;

bool multiple(uint64_t value) { return value != 0 && value % kVmmGranularity == 0; }

CUresult valid_props(const CUmemAllocationProp* props) {
  if (props == nullptr || props->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  const auto handles = props->requestedHandleTypes;
  if (handles != CU_MEM_HANDLE_TYPE_NONE && handles != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  switch (props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return device_at(props->location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

VmmMemory* memory_of(CUmemGenericAllocationHandle handle) {
  VmmMemory* memory = live<VmmMemory>(handle);
  return memory != nullptr && memory->handles != 0 ? memory : nullptr;
}

CUmemGenericAllocationHandle handle_value(VmmMemory* memory) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(memory);
}

bool inside_reserved(const VmmState& state, uint64_t address, size_t bytes) {
  auto after = state.reserved.upper_bound(address);
  if (after == state.reserved.begin()) return false;
  --after;
  const uint64_t offset = address - after->first;
  return offset < after->second && bytes <= after->second - offset;
}

bool any_mapping_in(const VmmState& state, uint64_t address, size_t bytes) {
  auto at = state.mappings.upper_bound(address);
  if (at != state.mappings.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes > address) return true;
  }
  return at != state.mappings.end() && at->first < address + bytes;
}

// The mappings that make up exactly [address, address + bytes); empty if some of it is not mapped.
std::vector<std::map<uint64_t, VmmMapping>::iterator> mappings_in(VmmState& state, uint64_t address, size_t bytes) {
  std::vector<std::map<uint64_t, VmmMapping>::iterator> found;
  uint64_t next = address;
  for (auto at = state.mappings.find(address); next < address + bytes; ++at) {
    if (at == state.mappings.end() || at->first != next) return {};
    next += at->second.bytes;
    found.push_back(at);
  }
  if (next != address + bytes) found.clear();
  return found;
}

int location_key(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

}  // namespace

SIM_API(cuMemAddressReserve, "cuMemAddressReserve",
        (CUdeviceptr * out, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags),
        (out, bytes, alignment, hint, flags)) {
  if (out == nullptr || !multiple(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment != 0 && (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMaxReserve || alignment > kMaxReserve) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t align = alignment > kVmmGranularity ? alignment : kVmmGranularity;
  void* p = MAP_FAILED;
  if (hint != 0 && hint % align == 0) {  // only a wish
    p = mmap(reinterpret_cast<void*>(hint), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED && reinterpret_cast<uint64_t>(p) % align != 0) {
      munmap(p, bytes);
      p = MAP_FAILED;
    }
  }
  if (p == MAP_FAILED) {
    void* wide = mmap(nullptr, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto begin = reinterpret_cast<uint64_t>(wide);
    const uint64_t aligned = (begin + align - 1) / align * align;
    if (aligned != begin) munmap(wide, aligned - begin);
    const uint64_t rest = begin + bytes + align - (aligned + bytes);
    if (rest != 0) munmap(reinterpret_cast<void*>(aligned + bytes), rest);
    p = reinterpret_cast<void*>(aligned);
  }
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  state.reserved[reinterpret_cast<uint64_t>(p)] = bytes;
  *out = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

SIM_API(cuMemAddressFree, "cuMemAddressFree", (CUdeviceptr address, size_t bytes), (address, bytes)) {
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const auto found = state.reserved.find(address);
  if (found == state.reserved.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (any_mapping_in(state, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(address), bytes);
  state.reserved.erase(found);
  return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",
        (size_t * out, const CUmemAllocationProp* props, CUmemAllocationGranularity_flags option),
        (out, props, option)) {
  if (out == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = valid_props(props); result != CUDA_SUCCESS) return result;
  *out = kVmmGranularity;
  return CUDA_SUCCESS;
}

SIM_API(cuMemCreate, "cuMemCreate",
        (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp* props, unsigned long long flags),
        (out, bytes, props, flags)) {
  if (out == nullptr || !multiple(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = valid_props(props); result != CUDA_SUCCESS) return result;
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  VmmMemory* memory = nullptr;
  const CUresult result = create_vmm_memory(*props, bytes, &memory);
  if (result != CUDA_SUCCESS) return result;
  Allocation allocation;
  allocation.address = handle_value(memory);
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::vmm;
  allocation.device = memory->device;
  truth_alloc(call, "alloc", allocation);
  *out = handle_value(memory);
  return CUDA_SUCCESS;
}

SIM_API(cuMemRelease, "cuMemRelease", (CUmemGenericAllocationHandle handle), (handle)) {
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  VmmMemory* memory = memory_of(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--memory->handles == 0) {
    Allocation allocation;
    allocation.address = handle;
    allocation.bytes = memory->bytes;
    allocation.kind = MemoryKind::vmm;
    allocation.device = memory->device;
    truth_alloc(call, "free", allocation);
  }
  drop_vmm_memory(*memory);
  return CUDA_SUCCESS;
}

SIM_API(cuMemMap, "cuMemMap",
        (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags),
        (address, bytes, offset, handle, flags)) {
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  VmmMemory* memory = memory_of(handle);
  if (memory == nullptr || flags != 0 || !multiple(bytes) || address % kVmmGranularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (offset % kVmmGranularity != 0 || offset > memory->bytes || bytes > memory->bytes - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!inside_reserved(state, address, bytes) || any_mapping_in(state, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  void* p = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                 memory->file, static_cast<off_t>(memory->offset + offset));
  if (p == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  leave_out_of_core_dumps(p, bytes);
  ++memory->mappings;
  state.mappings[address] = VmmMapping{bytes, offset, memory, {}};
  Allocation allocation;
  allocation.address = address;
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::vmm;
  allocation.device = memory->device;
  allocation.readable = false;
  allocation.owner = memory;
  add_allocation(allocation);
  return CUDA_SUCCESS;
}

SIM_API(cuMemUnmap, "cuMemUnmap", (CUdeviceptr address, size_t bytes), (address, bytes)) {
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  if (Context* context = call.context()) context_wait_host(*context);
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const auto found = mappings_in(state, address, bytes);
  if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& at : found) {
    void* reserved = mmap(reinterpret_cast<void*>(at->first), at->second.bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;  // too many mappings: it stays as it was
    remove_allocation(at->first);
    VmmMemory& memory = *at->second.memory;
    --memory.mappings;
    state.mappings.erase(at);
    drop_vmm_memory(memory);
  }
  return CUDA_SUCCESS;
}

SIM_API(cuMemSetAccess, "cuMemSetAccess",
        (CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count),
        (address, bytes, access, count)) {
  if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = access[i].location;
    const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (device && device_at(location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (!device && location.type != CU_MEM_LOCATION_TYPE_HOST && location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const auto found = mappings_in(state, address, bytes);
  if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& at : found) {
    for (size_t i = 0; i < count; ++i) at->second.access[location_key(access[i].location)] = access[i].flags;
    int protection = PROT_NONE;
    for (const auto& [where, flags] : at->second.access) {
      if ((flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0) protection |= PROT_READ;
      if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) protection |= PROT_WRITE;
    }
    if (mprotect(reinterpret_cast<void*>(at->first), at->second.bytes, protection) != 0) return CUDA_ERROR_MAP_FAILED;
    update_allocation(at->first, [&](Allocation& a) { a.readable = protection != PROT_NONE; });
  }
  return CUDA_SUCCESS;
}

SIM_API(cuMemGetAccess, "cuMemGetAccess",
        (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address), (flags, location, address)) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->kind != MemoryKind::vmm) return CUDA_ERROR_INVALID_VALUE;
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const auto mapping = state.mappings.find(allocation->address);
  if (mapping == state.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto found = mapping->second.access.find(location_key(*location));
  *flags = found != mapping->second.access.end() ? found->second : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

SIM_API(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", (CUmemGenericAllocationHandle * out, void* address),
        (out, address)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(reinterpret_cast<uint64_t>(address));
  if (!allocation || allocation->kind != MemoryKind::vmm) return CUDA_ERROR_INVALID_VALUE;
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const auto mapping = state.mappings.find(allocation->address);
  if (mapping == state.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->second.memory->handles;
  *out = handle_value(mapping->second.memory);
  return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle",
        (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle), (out, handle)) {
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const VmmMemory* memory = memory_of(handle);
  if (memory == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = memory->props;
  return CUDA_SUCCESS;
}

SIM_API(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",
        (void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags),
        (out, handle, type, flags)) {
  VmmState& state = vmm();
  std::lock_guard lock(state.mutex);
  const VmmMemory* memory = memory_of(handle);
  if (memory == nullptr || out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (memory->props.requestedHandleTypes != type) return CUDA_ERROR_INVALID_VALUE;
  const int copy = fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(out, &copy, sizeof copy);
  return CUDA_SUCCESS;
}

SIM_API(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle",
        (CUmemGenericAllocationHandle * out, void* os_handle, CUmemAllocationHandleType type), (out, os_handle, type)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Context* context = call.context();
  VmmMemory* memory = import_vmm_memory(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)),
                                        context != nullptr ? context->device : device_at(0));
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_value(memory);
  return CUDA_SUCCESS;
}
