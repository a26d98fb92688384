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

  u32 of(u64 key) {
    for (std::size_t at = hash_(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.number == kFree) return add(slot, key);
      if (slot.key == key) return slot.number;
    }
  }
  // Brings close what of() will read for that key.
  [[gnu::always_inline]] inline void expect(u64 key) const {
    __builtin_prefetch(&slots_[hash_(key) & (slots_.size() - 1)]);
  }
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
  void grow() {
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
