// Memory pools: stream-ordered allocation.
//
// A pool reserves device memory in chunks and hands out parts of them. A freed part is at once there again for the
// stream that freed it, and for others when the free's place in that stream has been reached. What is reserved but not
// used, beyond the release threshold, goes back to the device when the host synchronizes.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "simgpu/driver/memory.h"
#include "simgpu/driver/state.h"

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
    uint64_t stream = 0;  // that freed it; 0: nobody's
    Nanos free_at = 0;    // when other streams may have it
  };
  struct Chunk {
    uint64_t base = 0;
    size_t bytes = 0;
    std::map<uint64_t, Part> parts;  // by address, without gaps; neighbours that are free are of different streams
  };

  Device* device = nullptr;
  bool is_default = false;
  bool imported = false;
  CUmemPoolProps props{};
  std::map<int, CUmemAccess_flags> access;  // of other devices
  std::mutex mutex;                         // guards what follows
  std::map<uint64_t, Chunk> chunks;         // by base
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0;
  bool reuse_event = true, reuse_opportunistic = true, reuse_dependencies = true;
  bool destroyed = false;  // goes with its last allocation
};

// The pool of a device that cuMemAllocAsync uses, and the one it began with.
Pool* current_pool(Device& device);
Pool* default_pool(Device& device);

// Unused memory beyond the threshold goes back. Called when the host has synchronized with a device.
void pools_synchronized(Device& device);

}  // namespace simgpu
