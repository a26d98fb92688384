// What is allocated at each moment of the pass: bytes by device and pool, peaks, and what kind of memory an address is.
//   · Told in time order, frees at their begin and allocations at their end: a freed address may be given to another
//     thread before the freeing call returns.
//   · VMM: physical memory (VmmCreate) counts from its creation until its last reference is released and it is mapped nowhere; mappings only
//     say what an address is; reserved address ranges are no memory.
//   · Memory of graphs counts from the replay that allocates it, in a pool of its own.
//   · Memory: O(live allocations) + O(pools) + at most 2 * kMaxMemorySamples samples a device.
#pragma once

#include <map>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/memory/certain_memory.h"
#include "analysis/memory/pieces_at_peak.h"

namespace gputrace {

class MemoryLedger {
 public:
  explicit MemoryLedger(ProcessTrace& facts) : facts_(facts) {}

  // Who allocates: for what is left at the end.
  struct Allocator {
    u16 call = 0;
    u32 origin = 0, function = kNone;
  };
  void allocated(const Alloc& alloc, i32 device, u32 context, Nanos at, const Allocator& by);
  void freed(const Free& free, Nanos at);
  void context_destroyed(u32 context, Nanos at);
  // A replay allocates at an address that is the graph's own; what an earlier replay left there is given back by it. Frees of
  // memory that a replay allocated may also be calls.
  void allocated_by_graph(u64 address, u64 bytes, i32 device, u32 context, Nanos at);
  void freed_by_graph(u64 address, Nanos at);
  // Where records were lost: between these times. Any order, before finish().
  CertainMemory& certain() { return certain_; }
  void finish();

  struct Place {
    HostMemory memory = HostMemory::Unknown;  // Unknown: no live allocation holds the address
    i32 device = -1;
  };
  Place find(u64 address) const;

 private:
  struct Block {
    u64 bytes = 0;
    u32 pool = kNone;  // index in facts_.pools; kNone: an address range that is no memory of its own (mapping, IPC)
    AllocKind kind = AllocKind::Device;
    u32 context = kNone;
    u64 physical = 0;  // VmmMap: the allocation handle
    i32 device = -1;
    u64 id = 0;  // of CertainMemory
    Nanos at = 0;
    Allocator by;
  };
  struct Physical {
    Block block;
    u64 maps = 0;
    u64 references = 0;  // to the handle: it is released as often as it was created, imported or retained
  };

  static constexpr u64 kGraphPool = ~0ull;  // no CUmemoryPool
  u32 pool_for(i32 device, AllocKind kind, u64 pool);
  void make_room(u64 address, Nanos at);
  struct OnDevice {
    DeviceMemory& facts;
    PiecesAtPeak<MemorySpan>& pieces;  // by Block::id
  };
  OnDevice device_memory(i32 device);
  void count_in(Block& block, u64 address, Nanos at);
  void count_out(const Block& block, Nanos at, bool by_call);
  void sample(DeviceMemory& memory, Nanos at);
  void unmap(u64 address, u64 bytes, Nanos at);
  bool retained(u64 handle);
  void drop_physical_if_unused(u64 handle, Nanos at);

  ProcessTrace& facts_;
  CertainMemory certain_;
  u64 next_id_ = 0;
  std::vector<PiecesAtPeak<MemorySpan>> pieces_;  // as facts_.device_memory
  std::map<u64, Block> blocks_;                   // by address
  std::unordered_map<u64, Block> arrays_;         // by handle
  std::unordered_map<u64, Physical> physical_;    // by handle
};

}  // namespace gputrace
