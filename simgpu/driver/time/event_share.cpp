#include "simgpu/driver/time/event_share.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>

namespace simgpu {

namespace {

constexpr uint64_t kMagic = 0x7367697065766e31;
constexpr uint64_t kSlots = 1 << 20;  // of a process, sparse; none is used twice, as others may still look at it
constexpr uint64_t kNever = 0, kPending = ~uint64_t{0};

using Slot = std::atomic<uint64_t>;  // kNever, kPending or the event's time
static_assert(Slot::is_always_lock_free);

struct Files {
  std::mutex mutex;
  int own = -1;
  Slot* own_slots = nullptr;
  uint64_t used = 0;
  std::map<std::pair<dev_t, ino_t>, Slot*> mapped;  // of other processes; never unmapped
};

Files& files() {
  static auto* const kFiles = new Files;  // never destroyed: events live in static destructors too
  return *kFiles;
}

Slot* map_slots(int file) {
  void* mapped = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Slot*>(mapped);
}

// Under the mutex.
bool open_own(Files& f) {
  if (f.own_slots != nullptr) return true;
  f.own = static_cast<int>(syscall(SYS_memfd_create, "simgpu-events", 1u /* MFD_CLOEXEC */));
  if (f.own < 0) return false;
  if (ftruncate(f.own, static_cast<off_t>(kSlots * sizeof(Slot))) == 0) f.own_slots = map_slots(f.own);
  if (f.own_slots == nullptr) close(f.own);
  return f.own_slots != nullptr;
}

Slot* slots_of(const SharedPlace& place) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", place.pid, place.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat about {};
  if (file < 0) return nullptr;
  Slot* slots = nullptr;
  if (fstat(file, &about) == 0 && static_cast<uint64_t>(about.st_size) == kSlots * sizeof(Slot)) {
    Files& f = files();
    std::lock_guard lock(f.mutex);
    Slot*& known = f.mapped[{about.st_dev, about.st_ino}];
    if (known == nullptr) known = map_slots(file);
    slots = known;
  }
  close(file);
  return slots;
}

void publish(Event& event, uint64_t value) {
  if (Slot* slot = event.shared.load(std::memory_order_relaxed)) slot->store(value, std::memory_order_release);
}

}  // namespace

CUresult export_event(Event& event, SharedPlace* out) {
  Files& f = files();
  std::scoped_lock lock(event.mutex, f.mutex);
  if ((event.flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (event.shared == nullptr) {
    if (!open_own(f) || f.used == kSlots) return CUDA_ERROR_OUT_OF_MEMORY;
    event.shared_slot = {kMagic, getpid(), f.own, f.used};
    event.shared = &f.own_slots[f.used++];
    publish(event, event.pending ? kPending : event.recorded ? event.at : kNever);
  }
  *out = event.shared_slot;
  return CUDA_SUCCESS;
}

CUresult import_event(const SharedPlace& place, Event& event) {
  if (place.magic != kMagic || place.slot >= kSlots) return CUDA_ERROR_INVALID_HANDLE;
  Slot* slots = slots_of(place);
  if (slots == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(event.mutex);
  event.shared = &slots[place.slot];
  event.shared_slot = place;
  return CUDA_SUCCESS;
}

void set_event_time(Event& event, Nanos at) {
  event.recorded = true;
  event.pending = false;
  event.at = at;
  publish(event, at);
}

void set_event_pending(Event& event) {
  event.recorded = event.pending = true;
  publish(event, kPending);
}

void adopt_event_time(Event& event) {
  const Slot* slot = event.shared.load(std::memory_order_relaxed);
  if (slot == nullptr || event.pending) return;
  const uint64_t value = slot->load(std::memory_order_acquire);
  if (value == kNever) return;
  event.recorded = true;
  event.at = value;  // kPending is later than any time
}

void wait_for_other_process(Event& event) {
  while (event.shared.load(std::memory_order_relaxed) != nullptr) {
    {
      std::lock_guard lock(event.mutex);
      adopt_event_time(event);
      if (event.pending || event.at != kPending) return;
    }
    const timespec nap{0, 50'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace simgpu
