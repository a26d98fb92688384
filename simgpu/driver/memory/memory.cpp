#include "simgpu/driver/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <shared_mutex>

#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/observe/observe.h"

namespace simgpu {

// The addresses of one device's memory: one sparse file, mapped once, parts handed out first fit.
struct MemoryArena {
  std::mutex mutex;
  char* base = nullptr;
  size_t bytes = 0;
  int file = -1;                        // -1: private memory, which no other process can map
  std::map<size_t, size_t> free_parts;  // offset → bytes, never adjacent
};

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

namespace {

constexpr size_t kGiveBackPages = 64 * 1024;  // smaller parts keep their pages when they are freed

struct Registry {
  std::shared_mutex mutex;
  std::map<uint64_t, Allocation> by_address;
  uint64_t next_id = 1;
};

Registry& registry() {
  static auto* const kRegistry = new Registry;
  return *kRegistry;
}

// The entry that contains `address`, or end.
template <class Map>
auto containing(Map& map, uint64_t address) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return map.end();
  --after;
  return address < after->second.end() ? after : map.end();
}

int sparse_file(size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)) return -1;
  const auto file = static_cast<int>(syscall(SYS_memfd_create, "simgpu", 1u /* MFD_CLOEXEC */));
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

// Room for holes between allocations, on top of the configured memory; less where addresses are limited.
bool map_arena(MemoryArena& arena) {
  const size_t wanted = round_up(knobs().memory + knobs().memory / 4, size_t{2} << 20);
  for (size_t bytes = wanted; bytes >= (size_t{2} << 20); bytes = round_up(bytes / 2, size_t{2} << 20)) {
    const int file = sparse_file(bytes);
    const int sharing = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_NORESERVE, file, 0);
    if (base != MAP_FAILED) {
      leave_out_of_core_dumps(base, bytes);
      arena.base = static_cast<char*>(base);
      arena.bytes = bytes;
      arena.file = file;
      arena.free_parts[0] = bytes;
      return true;
    }
    if (file >= 0) close(file);
    if (bytes == (size_t{2} << 20)) break;
  }
  return false;
}

MemoryArena* arena_of(Device& device) {
  static constinit std::mutex mutex;
  std::lock_guard lock(mutex);
  if (device.arena == nullptr) {
    auto* arena = new MemoryArena;
    if (!map_arena(*arena)) {
      delete arena;
      return nullptr;
    }
    device.arena = arena;
  }
  return device.arena;
}

void give_back_pages(MemoryArena& arena, size_t offset, size_t bytes) {
  const size_t page = page_bytes();
  const size_t begin = round_up(offset, page);
  const size_t end = (offset + bytes) / page * page;
  if (end < begin + kGiveBackPages) return;
  madvise(arena.base + begin, end - begin, arena.file >= 0 ? MADV_REMOVE : MADV_DONTNEED);
}

}  // namespace

void leave_out_of_core_dumps(void* mapped, size_t bytes) { madvise(mapped, bytes, MADV_DONTDUMP); }

const char* copy_memory_text(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::managed:
      return "managed";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::pageable:
      return "pageable";
    case MemoryKind::device:
    case MemoryKind::array:
    case MemoryKind::pool:
    case MemoryKind::vmm:
      break;
  }
  return "device";
}

const char* alloc_memory_text(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::managed:
      return "managed";
    case MemoryKind::pinned:
    case MemoryKind::pageable:
      return "host";
    case MemoryKind::array:
      return "array";
    case MemoryKind::pool:
      return "pool";
    case MemoryKind::vmm:
      return "vmm";
    case MemoryKind::device:
      break;
  }
  return "device";
}

std::optional<Allocation> find_allocation(uint64_t address) {
  Registry& own = registry();
  std::shared_lock lock(own.mutex);
  const auto found = containing(own.by_address, address);
  if (found == own.by_address.end()) return std::nullopt;
  return found->second;
}

std::optional<Allocation> find_range(uint64_t address, size_t bytes) {
  Registry& own = registry();
  std::shared_lock lock(own.mutex);
  const auto found = containing(own.by_address, address);
  if (found == own.by_address.end() || address + bytes < address) return std::nullopt;
  uint64_t end = found->second.end();
  for (auto next = std::next(found); end < address + bytes; ++next) {
    const bool joined = next != own.by_address.end() && next->first == end && next->second.kind == MemoryKind::vmm &&
                        found->second.kind == MemoryKind::vmm;
    if (!joined) return std::nullopt;
    end = next->second.end();
  }
  return found->second;
}

void add_allocation(Allocation allocation) {
  Registry& own = registry();
  std::unique_lock lock(own.mutex);
  if (allocation.id == 0) allocation.id = own.next_id++;
  own.by_address[allocation.address] = allocation;
}

std::optional<Allocation> remove_allocation(uint64_t address) {
  Registry& own = registry();
  std::unique_lock lock(own.mutex);
  const auto found = own.by_address.find(address);
  if (found == own.by_address.end()) return std::nullopt;
  Allocation allocation = found->second;
  own.by_address.erase(found);
  return allocation;
}

bool update_allocation(uint64_t address, const std::function<void(Allocation&)>& change) {
  Registry& own = registry();
  std::unique_lock lock(own.mutex);
  const auto found = containing(own.by_address, address);
  if (found == own.by_address.end()) return false;
  change(found->second);
  return true;
}

std::vector<Allocation> remove_allocations_of(Context* context) {
  Registry& own = registry();
  std::unique_lock lock(own.mutex);
  std::vector<Allocation> removed;
  for (auto it = own.by_address.begin(); it != own.by_address.end();) {
    const Allocation& allocation = it->second;
    const bool goes = allocation.context == context && allocation.kind != MemoryKind::vmm &&
                      allocation.kind != MemoryKind::pool && allocation.kind != MemoryKind::array;
    if (goes) removed.push_back(allocation);
    it = goes ? own.by_address.erase(it) : std::next(it);
  }
  return removed;
}

bool device_take(Device& device, size_t bytes) {
  size_t used = device.used.load();
  do {
    if (bytes > knobs().memory || used > knobs().memory - bytes) return false;
  } while (!device.used.compare_exchange_weak(used, used + bytes));
  return true;
}

void device_give(Device& device, size_t bytes) { device.used.fetch_sub(bytes); }

size_t device_free_bytes(const Device& device) {
  const size_t used = device.used.load();
  return used < knobs().memory ? knobs().memory - used : 0;
}

void* device_reserve(Device& device, size_t bytes) {
  if (bytes == 0 || bytes > knobs().memory) return nullptr;
  const size_t taken = round_up(bytes, kAlignment);
  if (!device_take(device, taken)) return nullptr;
  MemoryArena* arena = arena_of(device);
  if (arena != nullptr) {
    std::lock_guard lock(arena->mutex);
    const auto part = std::find_if(arena->free_parts.begin(), arena->free_parts.end(),
                                   [&](const auto& candidate) { return candidate.second >= taken; });
    if (part != arena->free_parts.end()) {
      const auto [offset, size] = *part;
      arena->free_parts.erase(part);
      if (size > taken) arena->free_parts[offset + taken] = size - taken;
      return arena->base + offset;
    }
  }
  device_give(device, taken);
  return nullptr;
}

void device_return(Device& device, void* address, size_t bytes) {
  const size_t taken = round_up(bytes, kAlignment);
  MemoryArena& arena = *device.arena;
  size_t offset = static_cast<size_t>(static_cast<char*>(address) - arena.base);
  size_t size = taken;
  {
    std::lock_guard lock(arena.mutex);
    give_back_pages(arena, offset, size);
    auto next = arena.free_parts.lower_bound(offset);
    if (next != arena.free_parts.end() && next->first == offset + size) {
      size += next->second;
      next = arena.free_parts.erase(next);
    }
    if (next != arena.free_parts.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
      }
    }
    arena.free_parts[offset] = size;
  }
  device_give(device, taken);
}

bool device_backing(const void* address, int* fd, uint64_t* offset) {
  for (const auto& device : devices()) {
    const MemoryArena* arena = device->arena;
    const auto* at = static_cast<const char*>(address);
    if (arena == nullptr || arena->file < 0 || at < arena->base || at >= arena->base + arena->bytes) continue;
    *fd = arena->file;
    *offset = static_cast<uint64_t>(at - arena->base);
    return true;
  }
  return false;
}

void* map_host_memory(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void give_back_memory(const Allocation& allocation) {
  void* p = reinterpret_cast<void*>(allocation.address);
  switch (allocation.kind) {
    case MemoryKind::device:
      device_return(*allocation.device, p, allocation.bytes);
      break;
    case MemoryKind::managed:
    case MemoryKind::pinned:
      if (!allocation.registered) munmap(p, allocation.bytes);
      break;
    case MemoryKind::pageable:
    case MemoryKind::array:
    case MemoryKind::pool:
    case MemoryKind::vmm:
      break;
  }
}

void truth_alloc(Call& call, const char* op, const Allocation& allocation, const Stream* stream) {
  if (looked_at(look::memory)) show_memory(call, op[0] == 'a', allocation, stream);
  if (!call.stamp()) return;
  TruthFields fields(op);
  fields.add("memory", alloc_memory_text(allocation.kind))
      .add("address", allocation.address)
      .add("bytes", uint64_t{allocation.bytes});
  if (allocation.device != nullptr) fields.add("device", allocation.device->ordinal);
  call.truth(fields);
}

}  // namespace simgpu
