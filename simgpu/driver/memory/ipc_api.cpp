// Memory handles between processes of one machine: the handle names the exporter's device memory file (/proc/PID/fd/N)
// and a place in it; opening maps that place.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

constexpr uint64_t kSharedMemoryMagic = 0x736769706d656d31;
constexpr unsigned kImportedFlag = 1u << 30;  // Allocation::flags: mapped from another process

struct SharedMemory {
  uint64_t magic;
  int32_t pid;
  int32_t file;
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(SharedMemory) <= sizeof(CUipcMemHandle));

CUresult open_memory(Call& call, CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
  if (out == nullptr || (flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  SharedMemory shared;
  std::memcpy(&shared, &handle, sizeof shared);
  if (shared.magic != kSharedMemoryMagic || shared.bytes == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (shared.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // only for other processes
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.pid, shared.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t begin = shared.offset / page_bytes() * page_bytes();
  const uint64_t before = shared.offset - begin;
  void* mapped =
      mmap(nullptr, shared.bytes + before, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(begin));
  close(file);
  if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  leave_out_of_core_dumps(mapped, shared.bytes + before);
  Allocation allocation;
  allocation.address = reinterpret_cast<uint64_t>(mapped) + before;
  allocation.bytes = shared.bytes;
  allocation.kind = MemoryKind::vmm;  // neither cuMemFree nor the context's end gives it back
  allocation.device = context->device;
  allocation.flags = kImportedFlag;
  add_allocation(allocation);
  *out = allocation.address;
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuIpcGetMemHandle, "cuIpcGetMemHandle", (CUipcMemHandle * out, CUdeviceptr address), (out, address)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->kind != MemoryKind::device) return CUDA_ERROR_INVALID_VALUE;
  SharedMemory shared{kSharedMemoryMagic, getpid(), -1, 0, allocation->bytes};
  if (!device_backing(reinterpret_cast<const void*>(allocation->address), &shared.file, &shared.offset)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &shared, sizeof shared);
  return CUDA_SUCCESS;
}

SIM_API(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
        (out, handle, flags)) {
  return open_memory(call, out, handle, flags);
}
SIM_ALIAS(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle",
          (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags), (out, handle, flags))

SIM_API(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (CUdeviceptr address), (address)) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->address != address || (allocation->flags & kImportedFlag) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context_wait_host(*context);
  if (!remove_allocation(address)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t begin = address / page_bytes() * page_bytes();
  munmap(reinterpret_cast<void*>(begin), allocation->end() - begin);
  return CUDA_SUCCESS;
}
