// CUPTI's correlation id → sequence number of the host's operation. Ids are given out in order, so each has the place that its last
// digits say: neighbours lie side by side, and what lies there is mostly gone when the next id comes that ends alike. Where it is
// not, there must be more places, as long as there are few for each operation; beyond that the id lies beside.
//   · Memory: 8 bytes a place; at least kFirst, fewer than 2 kPlaces for each operation that was in the window when it grew; a map's
//     entry for each id beside.
//   · One thread.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/read/paged_array.h"
#include "base/types.h"

namespace gputrace {

class CorrelationIndex {
 public:
  static constexpr u32 kFirst = 1024;
  static constexpr u64 kPlaces = 16;  // ids that other calls take meanwhile leave places empty

  // `oldest`: operations before it are gone.
  void put(u32 correlation, u32 sequence, u32 oldest) {
    Slot& slot = slots_[correlation & mask_];
    if (!beside_.empty() || (slot.number > oldest && slot.correlation != correlation)) [[unlikely]]
      return put_anywhere(correlation, sequence, oldest);
    slot = {correlation, sequence + 1};
  }
  // Unless the id is known already.
  void put_first(u32 correlation, u32 sequence, u32 oldest) {
    if (find(correlation, oldest) == kNone) put(correlation, sequence, oldest);
  }

  // kNone: not known, or gone.
  u32 find(u32 correlation, u32 oldest) const {
    const Slot& slot = slots_[correlation & mask_];
    if (slot.correlation == correlation && slot.number > oldest) return slot.number - 1;
    return beside_.empty() ? kNone : find_beside(correlation, oldest);
  }

  // find() or put() of that id comes soon.
  [[gnu::always_inline]] inline void expect(u32 correlation) const {
    __builtin_prefetch(&slots_[correlation & mask_], 1);
  }

 private:
  struct Slot {
    u32 correlation;
    u32 number;  // sequence number + 1; 0: free, as zeroed memory is
  };

  [[gnu::noinline]] u32 find_beside(u32 correlation, u32 oldest) const {
    const auto known = beside_.find(correlation);
    return known != beside_.end() && known->second > oldest ? known->second - 1 : kNone;
  }

  [[gnu::noinline]] void put_anywhere(u32 correlation, u32 sequence, u32 oldest) {
    beside_.erase(correlation);
    const auto is_taken = [&] {
      const Slot& slot = slots_[correlation & mask_];
      return slot.number > oldest && slot.correlation != correlation;
    };
    while (is_taken() && slots_.size() < kPlaces * (u64{sequence} + 1 - std::min(sequence, oldest))) grow(oldest);
    if (!is_taken()) {
      slots_[correlation & mask_] = {correlation, sequence + 1};
      return;
    }
    if (beside_.size() >= sweep_at_) {
      std::erase_if(beside_, [&](const auto& each) { return each.second <= oldest; });
      sweep_at_ = std::max<std::size_t>(kFirst, 2 * beside_.size());
    }
    beside_[correlation] = sequence + 1;
  }

  void grow(u32 oldest) {
    PagedArray<Slot> larger(2 * slots_.size(), Fresh::Zeroed);
    mask_ = static_cast<u32>(larger.size() - 1);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].number > oldest) larger[slots_[i].correlation & mask_] = slots_[i];
    }
    slots_.swap(larger);
  }

  PagedArray<Slot> slots_{kFirst, Fresh::Zeroed};  // a power of two
  u32 mask_ = kFirst - 1;
  std::unordered_map<u32, u32> beside_;  // id → number, as in Slot
  std::size_t sweep_at_ = kFirst;        // size of beside_ at which those that are gone leave it
};

}  // namespace gputrace
