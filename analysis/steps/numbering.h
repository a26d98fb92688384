// Numbers for different keys, in the order in which they come first: 0, 1, 2 … A table in one piece, since a loop's text asks it several
// times for each of its events.
//   · Memory: 32 to 64 bytes a different key. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "base/types.h"
#include "trace/seeded_hash.h"

namespace gputrace {

class Numbering {
 public:
  // `least`: keys that will come at least.
  explicit Numbering(std::size_t least = 0) : slots_(std::bit_ceil(std::max(kLeastSlots, 2 * least))) {}

  u64 hash(u64 key) const { return hash_(key); }
  u32 of(u64 key) { return of(key, hash(key)); }
  u32 of(u64 key, u64 hash) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.number == kFree) return add(slot, key);
      if (slot.key == key) return slot.number;
    }
  }
  // Brings close what of() will read for a key of that hash.
  [[gnu::always_inline]] inline void expect(u64 hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kLeastSlots = 1024;  // a power of two, as each size of the table
  static constexpr u32 kFree = 0xffffffffu;
  struct Slot {
    u64 key = 0;
    u32 number = kFree;
  };

  u32 add(Slot& slot, u64 key) {
    slot = {key, size_};
    if (++size_ * 2 > slots_.size()) grow();
    return size_ - 1;
  }
  [[gnu::noinline]] void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kFree) continue;
      std::size_t at = hash_(slot.key) & (slots_.size() - 1);
      while (slots_[at].number != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  const SeededHash hash_;
  std::vector<Slot> slots_;
  u32 size_ = 0;
};

}  // namespace gputrace
