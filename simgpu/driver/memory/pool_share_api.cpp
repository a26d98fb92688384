// Pools of other processes: the exporter's device memory file is mapped here, part by part.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/memory/pool.h"

using namespace simgpu;

namespace {

constexpr uint64_t kSharedPointerMagic = 0x73676d706f6f6c31;  // in CUmemPoolPtrExportData

struct SharedPointer {
  uint64_t magic;
  uint64_t offset;  // in the exporter's file
  uint64_t bytes;
};
static_assert(sizeof(SharedPointer) <= sizeof(CUmemPoolPtrExportData));

}  // namespace

namespace simgpu {

void release_pool_allocation(const Allocation& allocation, Stream* stream) {
  Pool& pool = *static_cast<Pool*>(allocation.owner);
  if (pool.imported_file < 0) {
    pool_free(allocation, stream);
    return;
  }
  const uint64_t base = allocation.address / page_bytes() * page_bytes();
  munmap(reinterpret_cast<void*>(base), allocation.end() - base);
}

}  // namespace simgpu

SIM_API(cuMemPoolExportToShareableHandle, "cuMemPoolExportToShareableHandle",
        (void* out, CUmemoryPool handle, CUmemAllocationHandleType type, unsigned long long flags),
        (out, handle, type, flags)) {
  Pool* pool = live<Pool>(handle);
  if (pool == nullptr || out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || pool->props.handleTypes != type)
    return CUDA_ERROR_INVALID_VALUE;
  // The file of the device's memory is found by any address in it.
  void* probe = device_reserve(*pool->device, 1);
  if (probe == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  int file = -1;
  uint64_t offset = 0;
  const bool backed = device_backing(probe, &file, &offset);
  device_return(*pool->device, probe, 1);
  if (!backed) return CUDA_ERROR_NOT_SUPPORTED;
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(out, &copy, sizeof copy);
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle",
        (CUmemoryPool * out, void* handle, CUmemAllocationHandleType type, unsigned long long flags),
        (out, handle, type, flags)) {
  if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  const int file = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(handle)), F_DUPFD_CLOEXEC, 0);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = type;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = context->device->ordinal;
  Pool* pool = make_pool(*context->device, props);
  if (pool == nullptr) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool->imported_file = file;
  *out = handle_of(pool);
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolExportPointer, "cuMemPoolExportPointer", (CUmemPoolPtrExportData * out, CUdeviceptr address),
        (out, address)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->kind != MemoryKind::pool || is_graph_memory(*allocation))
    return CUDA_ERROR_INVALID_VALUE;
  const Pool& pool = *static_cast<const Pool*>(allocation->owner);
  if (pool.props.handleTypes == CU_MEM_HANDLE_TYPE_NONE || pool.imported_file >= 0) return CUDA_ERROR_INVALID_VALUE;
  int file = -1;
  SharedPointer shared{kSharedPointerMagic, 0, allocation->bytes};
  if (!device_backing(reinterpret_cast<const void*>(allocation->address), &file, &shared.offset)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &shared, sizeof shared);
  return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportPointer, "cuMemPoolImportPointer",
        (CUdeviceptr * out, CUmemoryPool handle, CUmemPoolPtrExportData* data), (out, handle, data)) {
  Pool* pool = live<Pool>(handle);
  if (out == nullptr || data == nullptr || pool == nullptr || pool->imported_file < 0) return CUDA_ERROR_INVALID_VALUE;
  SharedPointer shared;
  std::memcpy(&shared, data, sizeof shared);
  if (shared.magic != kSharedPointerMagic || shared.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t begin = shared.offset / page_bytes() * page_bytes();
  const uint64_t before = shared.offset - begin;
  void* mapped = mmap(nullptr, shared.bytes + before, PROT_READ | PROT_WRITE, MAP_SHARED, pool->imported_file,
                      static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  leave_out_of_core_dumps(mapped, shared.bytes + before);
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(mapped) + before;
  allocation.bytes = shared.bytes;
  allocation.kind = MemoryKind::pool;
  allocation.device = pool->device;
  allocation.owner = pool;
  add_allocation(allocation);
  truth_alloc(call, "alloc", allocation);
  *out = allocation.address;
  return CUDA_SUCCESS;
}
