// CUPTI's correlation id → sequence number of the host's operation. Open addressing; entries whose operation has left
// the window are room for new ones. 8 bytes an entry, at most three quarters full. One thread.
#pragma once

#include <algorithm>
#include <bit>

#include "analysis/facts/facts.h"
#include "analysis/read/paged_array.h"
#include "base/types.h"

namespace gputrace {

class CorrelationIndex {
 public:
  // `oldest`: operations before it are gone.
  void put(u32 correlation, u32 sequence, u32 oldest) { slot_for(correlation, oldest) = {correlation, sequence + 1}; }
  // Unless the id is known already.
  void put_first(u32 correlation, u32 sequence, u32 oldest) {
    Slot& slot = slot_for(correlation, oldest);
    if (slot.number <= oldest) slot = {correlation, sequence + 1};
  }

  // kNone: not known, or gone.
  u32 find(u32 correlation, u32 oldest) const {
    if (slots_.size() == 0) return kNone;
    for (std::size_t at = place(correlation);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.number == 0) return kNone;
      if (slot.correlation == correlation && slot.number > oldest) return slot.number - 1;
    }
  }

  // find() or put() of that id comes soon.
  [[gnu::always_inline]] inline void expect(u32 correlation) const {
    if (slots_.size() != 0) __builtin_prefetch(&slots_[place(correlation)]);
  }

 private:
  struct Slot {
    u32 correlation;
    u32 number;  // sequence number + 1; 0: free, as zeroed memory is
  };
  // Ids are given out in order: sixteen lie side by side, and the next sixteen elsewhere. In one row they would make a
  // run as long as the table, and every id that is not known would be looked for along all of it.
  std::size_t place(u32 correlation) const {
    return std::size_t{(correlation >> 4) * 0x9e3779b1u >> shift_} << 4 | (correlation & 15);
  }

  // That of the id, or else the first with room for it, which is to be filled.
  Slot& slot_for(u32 correlation, u32 oldest) {
    if ((used_ + 1) * 4 > slots_.size() * 3) rebuild(oldest);
    Slot* room = nullptr;
    for (std::size_t at = place(correlation);; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.number > oldest) {
        if (slot.correlation == correlation) return slot;
        continue;
      }
      if (!room) room = &slot;
      if (slot.number != 0) continue;
      used_ += room == &slot;
      return *room;
    }
  }

  // A table is made anew when three quarters are used, by what is gone too; a larger one where more than half would be used at
  // once.
  [[gnu::noinline]] void rebuild(u32 oldest) {
    std::size_t size = std::max<std::size_t>(1024, slots_.size());
    move_to(size, oldest);
    for (; used_ * 2 > size; move_to(size, oldest)) size *= 2;
  }

  void move_to(std::size_t size, u32 oldest) {
    if (spare_.size() == size)
      std::fill_n(spare_.data(), size, Slot{0, 0});
    else
      spare_ = PagedArray<Slot>(size, Fresh::Zeroed);
    slots_.swap(spare_);
    rehash(spare_, oldest);
  }

  void rehash(const PagedArray<Slot>& old, u32 oldest) {
    const std::size_t size = slots_.size();
    mask_ = size - 1;
    shift_ = 36 - static_cast<u32>(std::countr_zero(size));
    used_ = 0;
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (old[i].number <= oldest) continue;
      std::size_t at = place(old[i].correlation);
      while (slots_[at].number != 0) at = (at + 1) & mask_;
      slots_[at] = old[i];
      ++used_;
    }
  }

  PagedArray<Slot> slots_;
  PagedArray<Slot> spare_;  // the table before the last rebuild: memory that is there already
  std::size_t mask_ = 0, used_ = 0;
  u32 shift_ = 0;  // leaves the bits of a group of sixteen
};

}  // namespace gputrace
