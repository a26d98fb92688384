#include "simgpu/driver/memory/vmm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simgpu {

namespace {

int new_file(size_t bytes) {
  const auto file = static_cast<int>(syscall(SYS_memfd_create, "simgpu-vmm", 1u /* MFD_CLOEXEC */));
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

// Part of the device's own file: no descriptor each. The arena aligns to less than a page, so one page more is taken,
// and its bytes are given back to the account.
bool take_from_arena(VmmMemory& memory) {
  const size_t page = page_bytes();
  void* p = device_reserve(*memory.device, memory.bytes + page);
  if (p == nullptr) return false;
  const auto address = reinterpret_cast<uint64_t>(p);
  const uint64_t aligned = (address + page - 1) / page * page;
  if (!device_backing(reinterpret_cast<void*>(aligned), &memory.file, &memory.offset)) {
    device_return(*memory.device, p, memory.bytes + page);
    return false;
  }
  device_give(*memory.device, page);
  memory.arena = static_cast<char*>(p);
  return true;
}

bool take_own_file(VmmMemory& memory) {
  if (memory.device != nullptr && !device_take(*memory.device, memory.bytes)) return false;
  memory.file = new_file(memory.bytes);
  memory.own_file = true;
  if (memory.file < 0 && memory.device != nullptr) device_give(*memory.device, memory.bytes);
  return memory.file >= 0;
}

void give_back(VmmMemory& memory) {
  if (memory.own_file) {
    close(memory.file);
    if (memory.device != nullptr) device_give(*memory.device, memory.bytes);
    return;
  }
  device_take(*memory.device, page_bytes());
  device_return(*memory.device, memory.arena, memory.bytes + page_bytes());
}

}  // namespace

VmmState& vmm() {
  static auto* state = new VmmState;
  return *state;
}

CUresult create_vmm_memory(const CUmemAllocationProp& props, size_t bytes, VmmMemory** out) {
  VmmMemory* memory = create<VmmMemory>();
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->props = props;
  memory->bytes = bytes;
  if (props.location.type == CU_MEM_LOCATION_TYPE_DEVICE) memory->device = device_at(props.location.id);
  // What another process may import is a file of its own.
  const bool shared = props.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE || memory->device == nullptr;
  const bool taken = (!shared && take_from_arena(*memory)) || take_own_file(*memory);
  if (!taken) {
    retire(memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = memory;
  return CUDA_SUCCESS;
}

VmmMemory* import_vmm_memory(int file, Device* device) {
  struct stat status {};
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  VmmMemory* memory = copy >= 0 && fstat(copy, &status) == 0 && status.st_size > 0 ? create<VmmMemory>() : nullptr;
  if (memory == nullptr) {
    if (copy >= 0) close(copy);
    return nullptr;
  }
  memory->bytes = static_cast<size_t>(status.st_size);
  memory->file = copy;
  memory->own_file = true;
  memory->props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->props.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  memory->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory->props.location.id = device != nullptr ? device->ordinal : 0;
  return memory;  // the exporter accounts for its bytes
}

void drop_vmm_memory(VmmMemory& memory) {
  if (memory.handles != 0 || memory.mappings != 0) return;
  give_back(memory);
  retire(&memory);
}

}  // namespace simgpu
