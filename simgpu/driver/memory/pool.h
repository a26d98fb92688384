// Memory pools: stream-ordered allocation.
//
// A pool reserves device memory in chunks and hands out parts of them. A freed part is available again at once to the
// stream that freed it, and to others once that stream has reached the free. What is reserved but not
// used, beyond the release threshold, goes back to the device when the host synchronizes.
#pragma once

#include <map>
#include <mutex>

#include "simgpu/driver/life/state.h"
#include "simgpu/driver/memory/memory.h"

namespace simgpu {

constexpr unsigned kGraphMemoryFlag = 1u << 31;  // Allocation::flags of memory that a graph allocates

inline bool is_graph_memory(const Allocation& allocation) {
  return allocation.kind == MemoryKind::pool && (allocation.flags & kGraphMemoryFlag) != 0;
}

struct Pool : Object {
  static constexpr uint64_t kTag = object_tag("sgMEMPOL");
  using Handle = CUmemoryPool;

  struct Part {
    size_t bytes = 0;
    bool used = false;
    uint64_t stream = 0;  // id of the stream that freed it; 0: nobody's
    Nanos free_at = 0;    // when other streams may have it
  };
  struct Chunk {
    size_t bytes = 0;
    std::map<uint64_t, Part> parts;  // by address, without gaps
  };

  Device* device = nullptr;
  bool is_default = false;
  int imported_file = -1;  // the exporter's memory; -1: an own pool
  CUmemPoolProps props{};
  std::mutex mutex;                         // guards what follows
  std::map<int, CUmemAccess_flags> access;  // of other devices, by ordinal
  std::map<uint64_t, Chunk> chunks;         // by address
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0;
  bool reuse_event = true, reuse_opportunistic = true, reuse_dependencies = true;
  bool destroyed = false;  // its handle is dead; its memory goes part by part
};

Pool* make_pool(Device& device, const CUmemPoolProps& props);
Pool* default_pool(Device& device);  // null: out of handles
// What cuMemAllocAsync uses on the device.
Pool* current_pool(Device& device);
void set_current_pool(Device& device, Pool* pool);

// A part of the pool for a stream, and back. `allocation` is the registered one.
CUresult pool_allocate(Pool& pool, size_t bytes, Stream& stream, Allocation* allocation);
// `stream` null: free for all at once.
void pool_free(const Allocation& allocation, Stream* stream);
// The same for imported pools too.
void release_pool_allocation(const Allocation& allocation, Stream* stream);
// Gives unused chunks back until no more than `keep` bytes are reserved, or all that is reserved is used.
void pool_trim(Pool& pool, uint64_t keep);
void pool_destroy(Pool& pool);

// Unused memory beyond the threshold goes back. For whoever has made the host wait for a device.
void pools_synchronized();

}  // namespace simgpu
