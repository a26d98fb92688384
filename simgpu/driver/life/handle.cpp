#include "simgpu/driver/life/handle.h"

#include <sys/mman.h>

#include <mutex>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace simgpu {

namespace {

constexpr size_t kSlot = 64;  // all slots are multiples of this and aligned to it
constexpr size_t kClasses = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kFirstRange = size_t{256} << 20;  // all of it is read for leaks
#else
constexpr size_t kFirstRange = size_t{16} << 30;
#endif
constexpr size_t kLastRange = size_t{16} << 20;

struct FreeSlot {
  uint64_t tag;  // stays 0: the slot is no live object
  FreeSlot* next;
};

constinit std::mutex mutex;
constinit std::atomic<uintptr_t> range_begin{0};
constinit std::atomic<uintptr_t> range_used{0};  // end of the part that was ever handed out
constinit uintptr_t range_end = 0;
constinit FreeSlot* free_slots[kClasses + 1] = {};

bool reserve_range() {
  for (size_t bytes = kFirstRange; bytes >= kLastRange; bytes /= 4) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, bytes, MADV_DONTDUMP);  // a core file of the range's size, most of it never touched, helps nobody
#ifdef __SANITIZE_ADDRESS__
    __lsan_register_root_region(p, bytes);  // what objects hold is not lost: they live as long as the process
#endif
    range_end = reinterpret_cast<uintptr_t>(p) + bytes;
    range_used.store(reinterpret_cast<uintptr_t>(p), std::memory_order_relaxed);
    range_begin.store(reinterpret_cast<uintptr_t>(p), std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

void* allocate_slot(size_t bytes) noexcept {
  const size_t units = (bytes + kSlot - 1) / kSlot;
  std::lock_guard lock(mutex);
  if (range_begin.load(std::memory_order_relaxed) == 0 && !reserve_range()) return nullptr;
  if (units <= kClasses && free_slots[units] != nullptr) {
    FreeSlot* slot = free_slots[units];
    free_slots[units] = slot->next;
    return slot;
  }
  const uintptr_t slot = range_used.load(std::memory_order_relaxed);
  if (range_end - slot < units * kSlot) return nullptr;
  range_used.store(slot + units * kSlot, std::memory_order_release);
  return reinterpret_cast<void*>(slot);
}

void free_slot(void* slot, size_t bytes) noexcept {
  const size_t units = (bytes + kSlot - 1) / kSlot;
  if (units > kClasses) return;
  std::lock_guard lock(mutex);
  auto* free = static_cast<FreeSlot*>(slot);
  free->tag = 0;
  free->next = free_slots[units];
  free_slots[units] = free;
}

bool in_handle_range(const void* p) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t begin = range_begin.load(std::memory_order_acquire);
  return begin != 0 && address >= begin && address < range_used.load(std::memory_order_acquire) && address % kSlot == 0;
}

}  // namespace simgpu
