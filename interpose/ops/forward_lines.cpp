#include "interpose/ops/forward_lines.h"

#include <atomic>

#include "base/mapped_memory.h"

namespace gputrace {
namespace {

constexpr u32 kLines = 1u << 15;
constexpr unsigned kFrameBits = 24;
constexpr u64 kFrameMask = (u64{1} << kFrameBits) - 1;

// Each one word, so that nobody waits: who the line is of above, its frame below.
struct Lines {
  std::atomic<u64> of[kLines];
};

constinit std::atomic<Lines*> lines{nullptr};  // PyTorch may call us at any time

// Threads count alike, from 0 on: each has its own stretch of the table to begin with.
u64 place_of(u64 number) {
  constexpr u64 kApart = 10007;
  return (number + (number >> kSequenceBits) * kApart) % kLines;
}

// Of numbers that share a place one in 2^40 has the same.
u64 sign_of(u64 number) { return number * 0x9e3779b97f4a7c15 & ~kFrameMask; }

}  // namespace

bool open_forward_lines() {
  Lines* const made = map_memory<Lines>(sizeof(Lines));
  lines.store(made, std::memory_order_release);
  return made != nullptr;
}

void close_forward_lines() {
  if (Lines* const old = lines.exchange(nullptr, std::memory_order_acq_rel)) unmap_memory(old, sizeof(Lines));
}

void remember_forward(u64 number, u32 frame) {
  Lines* const all = lines.load(std::memory_order_acquire);
  if (!all) return;
  const u64 known = frame <= kFrameMask ? frame : 0;
  all->of[place_of(number)].store(sign_of(number) | known, std::memory_order_relaxed);
}

u32 forward_frame(u64 number) {
  const Lines* const all = lines.load(std::memory_order_acquire);
  if (!all) return 0;
  const u64 line = all->of[place_of(number)].load(std::memory_order_relaxed);
  return (line & ~kFrameMask) == sign_of(number) ? static_cast<u32>(line & kFrameMask) : 0;
}

}  // namespace gputrace
