#include "simgpu/driver/memory/pool.h"

#include <algorithm>
#include <atomic>

namespace simgpu {

namespace {

constexpr size_t kChunkBytes = size_t{32} << 20;
constexpr size_t kGranule = size_t{2} << 20;

struct Pools {
  std::mutex mutex;
  std::vector<Pool*> all;  // that hold or may hold memory
  std::map<int, Pool*> defaults;
  std::map<int, Pool*> current;
};

Pools& pools() {
  static auto* all = new Pools;
  return *all;
}

constinit std::atomic<bool> unused_reserved{false};  // some pool has memory that it may have to give back

using PartAt = std::map<uint64_t, Pool::Part>::iterator;

bool available(const Pool& pool, const Pool::Part& part, const Stream& stream, Nanos now) {
  if (part.used) return false;
  if (part.stream == 0 || part.stream == stream.id) return true;
  return pool.reuse_opportunistic && part.free_at <= now;
}

// Joins a free part with the free part after it, if the same streams may have both.
void join_next(Pool::Chunk& chunk, PartAt part) {
  const auto next = std::next(part);
  if (next == chunk.parts.end() || part->second.used || next->second.used) return;
  if (part->second.stream != next->second.stream) return;
  part->second.bytes += next->second.bytes;
  part->second.free_at = std::max(part->second.free_at, next->second.free_at);
  chunk.parts.erase(next);
}

// What was freed long enough ago is nobody's any more.
void settle(Pool& pool, Nanos now) {
  for (auto& [base, chunk] : pool.chunks) {
    for (auto part = chunk.parts.begin(); part != chunk.parts.end(); ++part) {
      if (!part->second.used && part->second.free_at <= now) part->second.stream = 0;
      if (part != chunk.parts.begin() && part->second.stream == 0 && !part->second.used) {
        const auto before = std::prev(part);
        const size_t parts = chunk.parts.size();
        join_next(chunk, before);
        if (chunk.parts.size() != parts) part = before;
      }
    }
  }
}

// The smallest part that is there for the stream and large enough.
bool find_part(Pool& pool, size_t bytes, const Stream& stream, Pool::Chunk** chunk, PartAt* part) {
  const Nanos now = now_ns();
  if (pool.reuse_opportunistic) settle(pool, now);
  size_t best = SIZE_MAX;
  for (auto& [base, candidate] : pool.chunks) {
    for (auto at = candidate.parts.begin(); at != candidate.parts.end(); ++at) {
      if (at->second.bytes < bytes || at->second.bytes >= best || !available(pool, at->second, stream, now)) continue;
      best = at->second.bytes;
      *chunk = &candidate;
      *part = at;
    }
  }
  return best != SIZE_MAX;
}

bool add_chunk(Pool& pool, size_t bytes) {
  void* base = nullptr;
  const size_t sizes[] = {std::max(kChunkBytes, round_up(bytes, kGranule)), round_up(bytes, kGranule),
                          round_up(bytes, kAlignment)};
  size_t taken = 0;
  for (size_t size : sizes) {
    if (pool.props.maxSize != 0 && pool.reserved + size > round_up(pool.props.maxSize, kGranule)) continue;
    base = device_reserve(*pool.device, size);
    taken = size;
    if (base != nullptr) break;
  }
  if (base == nullptr) return false;
  Pool::Chunk chunk;
  chunk.bytes = taken;
  chunk.parts[reinterpret_cast<uint64_t>(base)] = Pool::Part{taken, false, 0, 0};
  pool.chunks[reinterpret_cast<uint64_t>(base)] = std::move(chunk);
  pool.reserved += taken;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

bool unused(const Pool::Chunk& chunk, bool at_once, Nanos now) {
  return std::all_of(chunk.parts.begin(), chunk.parts.end(),
                     [&](const auto& entry) { return !entry.second.used && (at_once || entry.second.free_at <= now); });
}

// `at_once`: also what streams have yet to reach.
void trim_locked(Pool& pool, uint64_t keep, bool at_once = false) {
  const Nanos now = now_ns();
  for (auto it = pool.chunks.begin(); it != pool.chunks.end() && pool.reserved > keep;) {
    if (!unused(it->second, at_once, now)) {
      ++it;
      continue;
    }
    device_return(*pool.device, reinterpret_cast<void*>(it->first), it->second.bytes);
    pool.reserved -= it->second.bytes;
    it = pool.chunks.erase(it);
  }
}

void forget(Pool& pool) {
  Pools& own = pools();
  std::lock_guard lock(own.mutex);
  own.all.erase(std::remove(own.all.begin(), own.all.end(), &pool), own.all.end());
}

}  // namespace

Pool* make_pool(Device& device, const CUmemPoolProps& props) {
  Pool* pool = create<Pool>();
  if (pool == nullptr) return nullptr;
  pool->device = &device;
  pool->props = props;
  Pools& own = pools();
  std::lock_guard lock(own.mutex);
  own.all.push_back(pool);
  return pool;
}

Pool* default_pool(Device& device) {
  Pools& own = pools();
  {
    std::lock_guard lock(own.mutex);
    const auto found = own.defaults.find(device.ordinal);
    if (found != own.defaults.end()) return found->second;
  }
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = device.ordinal;
  Pool* pool = make_pool(device, props);
  if (pool == nullptr) return nullptr;
  pool->is_default = true;
  std::unique_lock lock(own.mutex);
  const auto [at, first] = own.defaults.emplace(device.ordinal, pool);
  Pool* kept = at->second;
  lock.unlock();
  if (!first) pool_destroy(*pool);  // another thread was faster
  return kept;
}

Pool* current_pool(Device& device) {
  Pools& own = pools();
  {
    std::lock_guard lock(own.mutex);
    const auto found = own.current.find(device.ordinal);
    if (found != own.current.end() && found->second->tag.load() == Pool::kTag) return found->second;
  }
  return default_pool(device);
}

void set_current_pool(Device& device, Pool* pool) {
  Pools& own = pools();
  std::lock_guard lock(own.mutex);
  own.current[device.ordinal] = pool;
}

CUresult pool_allocate(Pool& pool, size_t bytes, Stream& stream, Allocation* allocation) {
  if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t taken = round_up(bytes, kAlignment);
  std::lock_guard lock(pool.mutex);
  Pool::Chunk* chunk = nullptr;
  PartAt part;
  if (!find_part(pool, taken, stream, &chunk, &part)) {
    if (!add_chunk(pool, taken)) {
      trim_locked(pool, 0);
      if (!add_chunk(pool, taken)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    find_part(pool, taken, stream, &chunk, &part);
  }
  if (part->second.bytes > taken) {
    Pool::Part rest = part->second;
    rest.bytes -= taken;
    chunk->parts.emplace(part->first + taken, rest);
  }
  part->second = Pool::Part{taken, true, 0, 0};
  pool.used += taken;
  pool.used_high = std::max(pool.used_high, pool.used);
  allocation->address = part->first;
  allocation->bytes = bytes;
  allocation->kind = MemoryKind::pool;
  allocation->device = pool.device;
  allocation->owner = &pool;
  add_allocation(*allocation);
  return CUDA_SUCCESS;
}

void pool_free(const Allocation& allocation, Stream* stream) {
  Pool& pool = *static_cast<Pool*>(allocation.owner);
  bool last = false;
  {
    std::lock_guard lock(pool.mutex);
    auto chunk = pool.chunks.upper_bound(allocation.address);
    if (chunk == pool.chunks.begin()) return;
    --chunk;
    auto& parts = chunk->second.parts;
    auto part = parts.find(allocation.address);
    if (part == parts.end() || !part->second.used) return;
    pool.used -= part->second.bytes;
    part->second.used = false;
    part->second.stream = stream != nullptr ? stream->id : 0;
    part->second.free_at = stream != nullptr ? std::max(now_ns(), stream->end.load()) : 0;
    join_next(chunk->second, part);
    if (part != parts.begin()) join_next(chunk->second, std::prev(part));
    if (pool.destroyed) trim_locked(pool, 0, true);
    last = pool.destroyed && pool.chunks.empty();
  }
  unused_reserved.store(true, std::memory_order_release);
  if (last) {
    forget(pool);
    release(&pool);
  }
}

void pool_trim(Pool& pool, uint64_t keep) {
  std::lock_guard lock(pool.mutex);
  trim_locked(pool, keep);
}

void pool_destroy(Pool& pool) {
  retain(&pool);
  retire(&pool);
  bool last = false;
  {
    std::lock_guard lock(pool.mutex);
    pool.destroyed = true;
    trim_locked(pool, 0, true);
    last = pool.chunks.empty();
  }
  if (last) {
    forget(pool);
    release(&pool);
  }
}

void pools_synchronized() {
  if (!unused_reserved.load(std::memory_order_acquire)) return;
  unused_reserved.store(false, std::memory_order_release);
  bool left = false;
  Pools& own = pools();
  std::lock_guard lock(own.mutex);
  for (Pool* pool : own.all) {
    std::lock_guard one(pool->mutex);
    trim_locked(*pool, pool->threshold);
    left |= pool->reserved > std::max(pool->threshold, pool->used);
  }
  if (left) unused_reserved.store(true, std::memory_order_release);  // other streams have yet to reach it
}

}  // namespace simgpu
