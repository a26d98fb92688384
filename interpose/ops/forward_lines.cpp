#include "interpose/ops/forward_lines.h"

#include <atomic>

#include "base/mapped_memory.h"

namespace gputrace {
namespace {

constexpr u32 kLines = 1u << 15;

struct ForwardLine {
  std::atomic<u64> number;
  std::atomic<u32> frame;
};
struct Lines {
  ForwardLine of[kLines];
};

constinit std::atomic<Lines*> lines{nullptr};  // PyTorch may call us at any time

// Threads count alike, from 0 on: each has its own stretch of the table to begin with.
u64 place_of(u64 number) {
  constexpr u64 kApart = 10007;
  return (number + (number >> kSequenceBits) * kApart) % kLines;
}

}  // namespace

bool open_forward_lines() {
  Lines* const made = map_memory<Lines>(sizeof(Lines));
  lines.store(made, std::memory_order_release);
  return made != nullptr;
}

void close_forward_lines() {
  if (Lines* const old = lines.exchange(nullptr, std::memory_order_acq_rel)) unmap_memory(old, sizeof(Lines));
}

// Numbers of several threads share an entry: one writes at a time, another one's line is not remembered then.
void remember_forward(u64 number, u32 frame) {
  Lines* const all = lines.load(std::memory_order_acquire);
  if (!all) return;
  ForwardLine& line = all->of[place_of(number)];
  if (line.number.load(std::memory_order_relaxed) == number && line.frame.load(std::memory_order_relaxed) == frame)
    return;
  if (line.number.exchange(kNoNumber, std::memory_order_acquire) == kNoNumber) return;
  std::atomic_thread_fence(std::memory_order_release);  // pairs with the acquire in forward_frame()
  line.frame.store(frame, std::memory_order_relaxed);
  line.number.store(number, std::memory_order_release);
}

u32 forward_frame(u64 number) {
  const Lines* const all = lines.load(std::memory_order_acquire);
  if (!all) return 0;
  const ForwardLine& line = all->of[place_of(number)];
  if (line.number.load(std::memory_order_acquire) != number) return 0;
  const u32 frame = line.frame.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return line.number.load(std::memory_order_relaxed) == number ? frame : 0;
}

}  // namespace gputrace
