#include "analysis/memory/memory_ledger.h"

#include <algorithm>
#include <tuple>

#include "analysis/facts/kind_names.h"
#include "analysis/memory/memory_samples.h"

namespace gputrace {
u32 MemoryLedger::pool_for(i32 device, AllocKind kind, u64 pool) {
  if (!on_device(kind)) device = -1;
  if (kind != AllocKind::Pool) pool = 0;
  u32 others = 0;
  for (u32 i = 0; i < facts_.pools.size(); ++i) {
    const MemoryPool& known = facts_.pools[i];
    if (known.device == device && known.kind == kind && known.pool == pool) return i;
    if (known.kind == AllocKind::Pool && known.pool != 0 && known.pool != kGraphPool) ++others;
  }
  MemoryPool made;
  made.device = device;
  made.kind = kind;
  made.pool = pool;
  made.name = pool_name(kind);
  if (pool == kGraphPool)
    made.name = "graphs";
  else if (pool != 0)
    made.name += " " + std::to_string(others + 1);
  facts_.pools.push_back(std::move(made));
  return static_cast<u32>(facts_.pools.size() - 1);
}

MemoryLedger::OnDevice MemoryLedger::device_memory(i32 device) {
  std::size_t at = 0;
  while (at < facts_.device_memory.size() && facts_.device_memory[at].device != device) ++at;
  if (at == facts_.device_memory.size()) facts_.device_memory.emplace_back().device = device;
  return {facts_.device_memory[at], entry_at(pieces_, at)};
}

// Keeps every change until there are too many; then only the largest value of each pair of neighbours, again and again.
void MemoryLedger::sample(DeviceMemory& memory, Nanos at) {
  add_memory_sample(memory.samples, memory.thinned, {at, memory.live_bytes}, &MemorySample::bytes);
}

void MemoryLedger::count_in(Block& block, u64 address, Nanos at) {
  block.id = ++next_id_;
  block.at = at;
  certain_.allocated(at, block.id, block.bytes, block.pool);
  MemoryPool& pool = facts_.pools[block.pool];
  ++pool.allocations;
  ++pool.live_count;
  pool.live_bytes += block.bytes;
  if (pool.live_bytes > pool.peak_bytes) {
    pool.peak_bytes = pool.live_bytes;
    pool.peak_at = at;
  }
  if (!on_device(block.kind)) return;
  const auto& [memory, pieces] = device_memory(block.device);
  memory.live_bytes += block.bytes;
  pieces.allocated(block.id, {pool_name(block.kind), address, block.bytes, block.by.origin, at});
  if (memory.live_bytes > memory.peak_bytes) {
    memory.peak_bytes = memory.live_bytes;
    memory.peak_at = at;
    pieces.reached();
    memory.at_peak.clear();
    for (const MemoryPool& part : facts_.pools) {
      if (part.device == block.device && on_device(part.kind) && part.live_count) {
        memory.at_peak.push_back({part.kind, part.live_bytes, part.live_count});
      }
    }
  }
  sample(memory, at);
}

void MemoryLedger::count_out(const Block& block, Nanos at, bool by_call) {
  MemoryPool& pool = facts_.pools[block.pool];
  if (by_call) ++pool.frees;
  certain_.freed(at, block.id);
  pool.live_count -= std::min<u64>(pool.live_count, 1);
  pool.live_bytes -= std::min(pool.live_bytes, block.bytes);
  if (!on_device(block.kind)) return;
  const auto& [memory, pieces] = device_memory(block.device);
  if (MemorySpan* const span = pieces.freed(block.id)) span->end = at;
  memory.live_bytes -= std::min(memory.live_bytes, block.bytes);
  sample(memory, at);
}

void MemoryLedger::allocated(const Alloc& alloc, i32 device, u32 context, Nanos at, const Allocator& by) {
  const auto kind = static_cast<AllocKind>(alloc.kind);
  if (alloc.header.result != 0 || (alloc.launch_flags & kLaunchCaptured) || kind == AllocKind::VmmReserve) return;
  if (kind == AllocKind::VmmCreate && alloc.bytes == 0 && retained(alloc.address)) return;
  const bool has_address = kind != AllocKind::VmmCreate && kind != AllocKind::Array && alloc.address != 0;
  if (has_address && kind != AllocKind::HostRegistered) make_room(alloc.address, at);
  Block block;
  block.bytes = alloc.bytes;
  block.kind = kind;
  block.context = context;
  block.device = device;
  block.by = by;
  if (kind == AllocKind::VmmMap) {
    block.physical = alloc.pool;
    const auto physical = physical_.find(alloc.pool);
    if (physical != physical_.end()) {
      ++physical->second.maps;
      block.device = physical->second.block.device;
    }
  } else if (kind != AllocKind::Ipc) {
    block.pool = pool_for(device, kind, alloc.pool);
    count_in(block, has_address ? alloc.address : 0, at);
  }
  if (kind == AllocKind::VmmCreate) {
    physical_[alloc.address] = Physical{block, 0, 1};
  } else if (kind == AllocKind::Array) {
    arrays_[alloc.address] = block;
  } else if (has_address) {
    blocks_[alloc.address] = block;
  }
}

// What had the address is gone, though its free was dropped or not seen: the address can have been given out again only
// after it.
void MemoryLedger::make_room(u64 address, Nanos at) {
  const auto old = blocks_.find(address);
  if (old == blocks_.end()) return;
  if (old->second.pool != kNone) count_out(old->second, at, false);
  blocks_.erase(old);
}

void MemoryLedger::allocated_by_graph(u64 address, u64 bytes, i32 device, u32 context, Nanos at) {
  make_room(address, at);
  Block block;
  block.bytes = bytes;
  block.kind = AllocKind::Pool;
  block.context = context;
  block.device = device;
  block.pool = pool_for(device, AllocKind::Pool, kGraphPool);
  count_in(block, address, at);
  blocks_[address] = block;
}

void MemoryLedger::freed_by_graph(u64 address, Nanos at) {
  const auto known = blocks_.find(address);
  if (known == blocks_.end()) return;
  if (known->second.pool != kNone) count_out(known->second, at, true);
  blocks_.erase(known);
}

// One more reference to physical memory that is known: cuMemRetainAllocationHandle, a second import. It wants a release of its own.
bool MemoryLedger::retained(u64 handle) {
  const auto it = physical_.find(handle);
  if (it == physical_.end()) return false;
  ++it->second.references;
  return true;
}

void MemoryLedger::drop_physical_if_unused(u64 handle, Nanos at) {
  const auto it = physical_.find(handle);
  if (it == physical_.end() || it->second.references > 0 || it->second.maps > 0) return;
  count_out(it->second.block, at, true);
  physical_.erase(it);
}

void MemoryLedger::unmap(u64 address, u64 bytes, Nanos at) {
  auto it = blocks_.lower_bound(address);
  while (it != blocks_.end() && (it->first == address || it->first - address < bytes)) {
    if (it->second.kind != AllocKind::VmmMap) {
      ++it;
      continue;
    }
    const u64 handle = it->second.physical;
    it = blocks_.erase(it);
    const auto physical = physical_.find(handle);
    if (physical == physical_.end()) continue;
    if (physical->second.maps > 0) --physical->second.maps;
    drop_physical_if_unused(handle, at);
  }
}

void MemoryLedger::freed(const Free& free, Nanos at) {
  const auto kind = static_cast<AllocKind>(free.kind);
  if (free.header.result != 0 || (free.launch_flags & kLaunchCaptured) || free.address == 0 ||
      kind == AllocKind::VmmReserve)
    return;
  if (kind == AllocKind::VmmMap) return unmap(free.address, free.bytes, at);
  if (kind == AllocKind::VmmCreate) {
    const auto it = physical_.find(free.address);
    if (it == physical_.end()) {
      ++facts_.unmatched_frees;
      return;
    }
    it->second.references -= it->second.references > 0;
    return drop_physical_if_unused(free.address, at);
  }
  if (kind == AllocKind::Array) {
    const auto it = arrays_.find(free.address);
    if (it == arrays_.end()) {
      ++facts_.unmatched_frees;
      return;
    }
    count_out(it->second, at, true);
    arrays_.erase(it);
    return;
  }
  const auto it = blocks_.find(free.address);
  if (it == blocks_.end()) {
    ++facts_.unmatched_frees;
    return;
  }
  if (it->second.pool != kNone) count_out(it->second, at, true);
  blocks_.erase(it);
}

void MemoryLedger::context_destroyed(u32 context, Nanos at) {
  if (context == kNone) return;
  const auto goes = [context](const Block& block) {
    return block.context == context && block.pool != kNone && block.kind != AllocKind::Pool;
  };
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    if (!goes(it->second)) {
      ++it;
      continue;
    }
    count_out(it->second, at, false);
    it = blocks_.erase(it);
  }
  for (auto it = arrays_.begin(); it != arrays_.end();) {
    if (!goes(it->second)) {
      ++it;
      continue;
    }
    count_out(it->second, at, false);
    it = arrays_.erase(it);
  }
}

void MemoryLedger::finish() {
  constexpr std::size_t kMostRows = 64;
  std::map<std::tuple<i32, u16, u32, u32>, LiveMemory> rows;
  const auto add = [&rows](const Block& block) {
    if (block.pool == kNone || !on_device(block.kind)) return;
    LiveMemory& row = rows[{block.device, block.by.call, block.by.origin, block.by.function}];
    if (row.count == 0) {
      row.device = block.device, row.call = block.by.call, row.origin = block.by.origin;
      row.function = block.by.function, row.oldest = row.newest = block.at;
    }
    ++row.count;
    row.bytes += block.bytes;
    row.oldest = std::min(row.oldest, block.at), row.newest = std::max(row.newest, block.at);
  };
  for (const auto& [address, block] : blocks_) add(block);
  for (const auto& [handle, block] : arrays_) add(block);
  for (const auto& [handle, physical] : physical_) add(physical.block);
  for (const auto& [key, row] : rows) facts_.live_memory.push_back(row);
  std::stable_sort(facts_.live_memory.begin(), facts_.live_memory.end(),
                   [](const LiveMemory& a, const LiveMemory& b) { return a.bytes > b.bytes; });
  if (facts_.live_memory.size() > kMostRows) facts_.live_memory.resize(kMostRows);
  for (std::size_t at = 0; at < pieces_.size(); ++at)
    facts_.device_memory[at].spans = largest_spans(pieces_[at].at_peak());
  certain_.finish(facts_.pools, facts_.device_memory);
}

MemoryLedger::Place MemoryLedger::find(u64 address) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return {};
  --it;
  const Block& block = it->second;
  if (address - it->first >= block.bytes && address != it->first) return {};
  switch (block.kind) {
    case AllocKind::Managed:
      return {HostMemory::Managed, block.device};
    case AllocKind::Host:
    case AllocKind::HostRegistered:
      return {HostMemory::Pinned, -1};
    default:
      return {HostMemory::Device, block.device};
  }
}

}  // namespace gputrace
