// Memory that the driver knows: who owns which addresses. Device memory is host memory at the same address (CUdeviceptr
// is a pointer), from one sparse memfd per device, so addresses are unique across devices and another process can map
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

inline constexpr size_t kAlignment = 512;  // of every allocation
constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
size_t page_bytes();

// A process that dies leaves no core file of a device's size.
void leave_out_of_core_dumps(void* mapped, size_t bytes);

enum class MemoryKind : uint8_t { device, managed, pinned, pageable, array, pool, vmm };
const char* copy_memory_text(MemoryKind kind);   // truth, copies: pinned pageable device managed
const char* alloc_memory_text(MemoryKind kind);  // truth, alloc and free: device managed host pool vmm array

struct Allocation {
  uint64_t address = 0;
  size_t bytes = 0;  // as asked for
  MemoryKind kind = MemoryKind::device;
  Context* context = nullptr;
  Device* device = nullptr;  // where it lies; of pinned memory: of the context
  unsigned flags = 0;        // CU_MEMHOSTALLOC_*, CU_MEMHOSTREGISTER_*, CU_MEM_ATTACH_*
  bool registered = false;   // cuMemHostRegister: the bytes are the program's
  bool readable = true;      // VMM: has access
  uint64_t id = 0;           // CU_POINTER_ATTRIBUTE_BUFFER_ID
  void* owner = nullptr;     // pool, VMM mapping: their own object
  bool sync_memops = false;
  // Managed memory: what cuMemAdvise and cuMemPrefetch said. Locations as cuMemRangeGetAttribute gives them.
  int preferred_location = CU_DEVICE_INVALID;
  int last_prefetch = CU_DEVICE_INVALID;
  bool read_mostly = false;
  uint64_t accessed_by = 0;  // bit per device
  bool accessed_by_host = false;
  uint64_t end() const { return address + bytes; }
};

// Registry. Thread-safe; what it returns is a copy.
std::optional<Allocation> find_allocation(uint64_t address);  // the one that contains it
// A range inside one allocation (or inside adjacent VMM mappings).
std::optional<Allocation> find_range(uint64_t address, size_t bytes);
void add_allocation(Allocation allocation);
std::optional<Allocation> remove_allocation(uint64_t address);  // by its start
// Changes one in place, under the registry's lock; false: none starts or contains there.
bool update_allocation(uint64_t address, const std::function<void(Allocation&)>& change);
// All of a context, removed (context destruction).
std::vector<Allocation> remove_allocations_of(Context* context);

// Bytes of a device. `take` accounts for `bytes` against SIMGPU_MEMORY (false: out of memory) and returns nothing else;
// `device_reserve` also finds addresses, 512-byte aligned. Both are undone by their partner.
bool device_take(Device& device, size_t bytes);
void device_give(Device& device, size_t bytes);
void* device_reserve(Device& device, size_t bytes);  // null: out of memory
void device_return(Device& device, void* address, size_t bytes);
size_t device_free_bytes(const Device& device);

// Where device memory lives, for IPC: the memfd (open in this process) and the offset in it. False: not of a device
// arena.
bool device_backing(const void* address, int* fd, uint64_t* offset);

// Host memory of the driver's own, zeroed pages; null: out of memory.
void* map_host_memory(size_t bytes);
// The bytes of an allocation that is out of the registry (pool, VMM and array memory is its owner's).
void give_back_memory(const Allocation& allocation);

// cuMemFree of memory that came from a pool; in the pool files. The allocation is still registered.
CUresult free_pool_memory(Call& call, const Allocation& allocation);

// op: "alloc" or "free"; stream: of the asynchronous calls
void truth_alloc(Call& call, const char* op, const Allocation& allocation, const Stream* stream = nullptr);

}  // namespace simgpu
