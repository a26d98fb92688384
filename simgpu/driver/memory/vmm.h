// Virtual memory management: reserved addresses, memory without an address, and mappings of the one onto the other.
// A mapping is a real one: the same memory mapped twice is seen twice, and without access it cannot be touched.
#pragma once

#include <map>
#include <mutex>

#include "simgpu/driver/life/state.h"
#include "simgpu/driver/memory/memory.h"

namespace simgpu {

// cuMemCreate. Lives while a handle or a mapping holds it.
struct VmmMemory : Object {
  static constexpr uint64_t kTag = object_tag("sgVMMMEM");
  using Handle = VmmMemory*;
  CUmemAllocationProp props{};
  Device* device = nullptr;  // null: host memory
  size_t bytes = 0;
  int file = -1;  // where the bytes lie
  uint64_t offset = 0;
  bool own_file = false;  // else: part of the device's memory file, at `arena`
  char* arena = nullptr;
  unsigned handles = 1;  // under vmm_mutex
  unsigned mappings = 0;
};

struct VmmMapping {
  size_t bytes = 0;
  size_t offset = 0;  // in the memory
  VmmMemory* memory = nullptr;
  std::map<int, CUmemAccess_flags> access;  // by device; -1: the host
};

struct VmmState {
  std::mutex mutex;
  std::map<uint64_t, size_t> reserved;      // address → bytes
  std::map<uint64_t, VmmMapping> mappings;  // by address
};
VmmState& vmm();

inline constexpr size_t kVmmGranularity = size_t{2} << 20;

CUresult create_vmm_memory(const CUmemAllocationProp& props, size_t bytes, VmmMemory** out);
VmmMemory* import_vmm_memory(int file, Device* device);
// Under vmm().mutex: gives one reference back and, with the last, the memory.
void drop_vmm_memory(VmmMemory& memory);

}  // namespace simgpu
