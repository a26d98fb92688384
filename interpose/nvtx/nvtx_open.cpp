#include "interpose/nvtx/nvtx_open.h"

#include "base/mapped_memory.h"

namespace gputrace {
namespace {

constexpr u32 kDepth = 24;
constexpr u32 kThreads = 1024, kWindow = 32;  // an entry is one of kWindow places
constexpr u32 kStarted = 512;

struct OpenThread {
  std::atomic<u64> thread;  // 0: free
  u32 depth;
  u32 lost;  // ranges on top of those that are kept
  OpenRange ranges[kDepth];
};
struct StartedRange {
  std::atomic<u64> id;  // 0: free; kTaken: being written
  OpenRange range;
};
constexpr u64 kTaken = ~0ull;

struct OpenRanges {
  OpenThread threads[kThreads];
  StartedRange started[kStarted];
  std::atomic<u32> started_count;
};
constinit std::atomic<OpenRanges*> open_ranges{nullptr};

OpenRanges* ranges_if_any() { return open_ranges.load(std::memory_order_acquire); }

OpenRanges* ranges() {
  if (OpenRanges* there = ranges_if_any()) return there;
  OpenRanges* const made = map_memory<OpenRanges>(sizeof(OpenRanges));
  if (!made) return nullptr;
  OpenRanges* none = nullptr;
  if (!open_ranges.compare_exchange_strong(none, made, std::memory_order_acq_rel))
    unmap_memory(made, sizeof(OpenRanges));
  return ranges_if_any();
}

u64 own_name() { return reinterpret_cast<u64>(__builtin_thread_pointer()); }

OpenThread* own_entry(bool make) {
  OpenRanges* all = make ? ranges() : ranges_if_any();
  if (!all) return nullptr;
  const u64 self = own_name();
  const u32 from = static_cast<u32>((self * 0x9e3779b97f4a7c15ull) >> 32);
  for (u32 i = 0; i < kWindow; ++i) {
    OpenThread& entry = all->threads[(from + i) % kThreads];
    if (entry.thread.load(std::memory_order_relaxed) == self) return &entry;
  }
  for (u32 i = 0; make && i < kWindow; ++i) {
    OpenThread& entry = all->threads[(from + i) % kThreads];
    u64 free = 0;
    if (!entry.thread.compare_exchange_strong(free, self, std::memory_order_acquire)) continue;
    entry.depth = entry.lost = 0;
    return &entry;
  }
  return nullptr;
}

void release_if_empty(OpenThread& entry) {
  if (!entry.depth && !entry.lost) entry.thread.store(0, std::memory_order_release);
}

}  // namespace

void nvtx_range_pushed(const OpenRange& range) {
  OpenThread* entry = own_entry(true);
  if (!entry) return;
  if (entry->depth == kDepth) {
    ++entry->lost;
    return;
  }
  entry->ranges[entry->depth++] = range;
}

bool nvtx_range_popped(const void* domain, OpenRange& range) {
  OpenThread* entry = own_entry(false);
  if (!entry) return false;
  if (entry->lost) {  // of which domain is not known: taken for the innermost
    --entry->lost;
    return false;
  }
  for (u32 i = entry->depth; i-- > 0;) {
    if (entry->ranges[i].domain != domain) continue;
    range = entry->ranges[i];
    for (u32 j = i + 1; j < entry->depth; ++j) entry->ranges[j - 1] = entry->ranges[j];
    --entry->depth;
    release_if_empty(*entry);
    return true;
  }
  return false;
}

void nvtx_range_started(const OpenRange& range) {
  OpenRanges* all = ranges();
  for (u32 i = 0; all && i < kStarted; ++i) {
    StartedRange& place = all->started[i];
    u64 free = 0;
    if (!place.id.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) continue;
    place.range = range;
    all->started_count.fetch_add(1, std::memory_order_relaxed);
    place.id.store(range.id, std::memory_order_release);
    return;
  }
}

bool nvtx_range_ended(u64 id, OpenRange& range) {
  OpenRanges* all = ranges_if_any();
  if (!all || !all->started_count.load(std::memory_order_relaxed) || !id) return false;
  for (StartedRange& place : all->started) {
    if (place.id.load(std::memory_order_acquire) != id) continue;
    range = place.range;
    u64 expected = id;
    if (!place.id.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return false;
    all->started_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void nvtx_visit_pushed(void (*visit)(OpenRange&, void*), void* data) {
  OpenThread* entry = own_entry(false);
  for (u32 i = 0; entry && i < entry->depth; ++i) visit(entry->ranges[i], data);
}

void nvtx_visit_started(void (*visit)(OpenRange&, void*), void* data) {
  OpenRanges* all = ranges_if_any();
  if (!all || !all->started_count.load(std::memory_order_relaxed)) return;
  for (StartedRange& place : all->started) {
    const u64 id = place.id.load(std::memory_order_acquire);
    if (id && id != kTaken) visit(place.range, data);
  }
}

void nvtx_forget_pushed() {
  OpenThread* entry = own_entry(false);
  if (!entry) return;
  entry->depth = entry->lost = 0;
  release_if_empty(*entry);
}

void nvtx_forget_started() {
  OpenRanges* all = ranges_if_any();
  if (!all || !all->started_count.load(std::memory_order_relaxed)) return;
  for (StartedRange& place : all->started) {
    OpenRange range;
    if (const u64 id = place.id.load(std::memory_order_relaxed); id && id != kTaken) nvtx_range_ended(id, range);
  }
}

void nvtx_forget_other_threads() {
  OpenRanges* all = ranges_if_any();
  const u64 self = own_name();
  for (u32 i = 0; all && i < kThreads; ++i) {
    OpenThread& entry = all->threads[i];
    if (entry.thread.load(std::memory_order_relaxed) != self) entry.thread.store(0, std::memory_order_relaxed);
  }
}

}  // namespace gputrace
