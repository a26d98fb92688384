// cuPointer*: whose memory an address is.
#include "simgpu/driver/memory/memory.h"

using namespace simgpu;

namespace {

bool reachable_by_device(const Allocation& allocation) { return allocation.readable; }

CUmemorytype type_of(const Allocation& allocation) {
  return allocation.kind == MemoryKind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

bool on_host(const Allocation& allocation) {
  return allocation.kind == MemoryKind::pinned || allocation.kind == MemoryKind::managed;
}

template <class T>
CUresult give(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

CUresult attribute_of(CUpointer_attribute attribute, const Allocation& own, CUdeviceptr pointer, void* out) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give<CUcontext>(out, own.context != nullptr ? handle_of(own.context) : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<CUmemorytype>(out, type_of(own));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return reachable_by_device(own) ? give<CUdeviceptr>(out, pointer) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return on_host(own) ? give<void*>(out, reinterpret_cast<void*>(pointer)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<int>(out, own.sync_memops ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give<unsigned long long>(out, own.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<int>(out, own.kind == MemoryKind::managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give<int>(out, own.device != nullptr ? own.device->ordinal : -1);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give<int>(out, own.kind == MemoryKind::device ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give<CUdeviceptr>(out, own.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give<size_t>(out, own.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<int>(out, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give<unsigned long long>(out, 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return give<int>(out, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give<int>(
          out, own.readable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give<CUmemoryPool>(out, own.kind == MemoryKind::pool ? static_cast<CUmemoryPool>(own.owner) : nullptr);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// What cuPointerGetAttributes says about memory that CUDA does not know.
void attribute_of_unknown(CUpointer_attribute attribute, void* out) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      give<int>(out, -2);
      return;  // CU_DEVICE_INVALID
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      give<CUmemorytype>(out, static_cast<CUmemorytype>(0));
      return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      give<int>(out, 0);
      return;
    default:
      give<uint64_t>(out, 0);
      return;
  }
}

}  // namespace

SIM_API(cuPointerGetAttribute, "cuPointerGetAttribute", (void* out, CUpointer_attribute attribute, CUdeviceptr pointer),
        (out, attribute, pointer)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(pointer);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  return attribute_of(attribute, *allocation, pointer, out);
}

SIM_API(cuPointerGetAttributes, "cuPointerGetAttributes",
        (unsigned count, CUpointer_attribute* attributes, void** outs, CUdeviceptr pointer),
        (count, attributes, outs, pointer)) {
  if (attributes == nullptr || outs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const auto wanted = static_cast<int>(attributes[i]);
    if (outs[i] == nullptr || wanted <= 0 || wanted > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
      return CUDA_ERROR_INVALID_VALUE;
    const bool known = allocation && attribute_of(attributes[i], *allocation, pointer, outs[i]) == CUDA_SUCCESS;
    if (!known) attribute_of_unknown(attributes[i], outs[i]);
  }
  return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute, "cuPointerSetAttribute",
        (const void* value, CUpointer_attribute attribute, CUdeviceptr pointer), (value, attribute, pointer)) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  const bool on = *static_cast<const unsigned*>(value) != 0;
  const bool known = update_allocation(pointer, [on](Allocation& own) { own.sync_memops = on; });
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
