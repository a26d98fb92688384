// CUPTI's correlation id → sequence number of the host's operation. Open addressing; entries whose operation has left
// the window are room for new ones. 8 bytes an entry, at most three quarters full. One thread.
#pragma once

#include <bit>
#include <vector>

#include "analysis/facts/facts.h"
#include "base/types.h"

namespace gputrace {

class CorrelationIndex {
 public:
  // `oldest`: operations before it are gone.
  void put(u32 correlation, u32 sequence, u32 oldest) {
    if ((used_ + 1) * 4 > slots_.size() * 3) rebuild(oldest);
    for (std::size_t at = place(correlation);; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      const bool free = slot.sequence == kNone;
      if (!free && slot.correlation != correlation && slot.sequence >= oldest) continue;
      if (free) ++used_;
      slot = {correlation, sequence};
      return;
    }
  }

  // kNone: not known, or gone.
  u32 find(u32 correlation, u32 oldest) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = place(correlation);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.sequence == kNone) return kNone;
      if (slot.correlation == correlation && slot.sequence >= oldest) return slot.sequence;
    }
  }

 private:
  struct Slot {
    u32 correlation = 0;
    u32 sequence = kNone;
  };

  // Ids are given out in order: sixteen lie side by side, and the next sixteen elsewhere. In one row they would make a
  // run as long as the table, and every id that is not known would be looked for along all of it.
  std::size_t place(u32 correlation) const {
    return std::size_t{(correlation >> 4) * 0x9e3779b1u >> shift_} << 4 | (correlation & 15);
  }

  void rebuild(u32 oldest) {
    std::vector<Slot> old;
    old.swap(slots_);
    std::size_t alive = 0;
    for (const Slot& slot : old) alive += slot.sequence != kNone && slot.sequence >= oldest;
    std::size_t size = 1024;
    while (size < alive * 2) size *= 2;
    slots_.assign(size, {});
    mask_ = size - 1;
    shift_ = 36 - static_cast<u32>(std::countr_zero(size));
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.sequence == kNone || slot.sequence < oldest) continue;
      std::size_t at = place(slot.correlation);
      while (slots_[at].sequence != kNone) at = (at + 1) & mask_;
      slots_[at] = slot;
      ++used_;
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0, used_ = 0;
  u32 shift_ = 0;  // leaves the bits of a group of sixteen
};

}  // namespace gputrace
