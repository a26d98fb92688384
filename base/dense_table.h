// What many threads look up and one at a time adds to, under a lock of the owner's; nothing is taken out. Entries lie one behind the other in the order in which
// they came, and a hash leads to their numbers: those in use take few pages, where entries spread by
// their hash take one each (decision 82).
//   · Memory: the owner's, zeroed; a table is never moved.
//   · `matches(entry)` says whether it is the one; entries are complete when they can be found.
#pragma once

#include <atomic>

#include "base/types.h"

namespace gputrace {

template <typename Entry, u32 kPlaces, u32 kMost>
class DenseTable {
  static_assert((kPlaces & (kPlaces - 1)) == 0 && kMost < kPlaces && kMost < 1u << 16);

 public:
  // nullptr: it is not there.
  template <typename Matches>
  const Entry* find(u64 hash, Matches&& matches) const {
    for (u32 at = static_cast<u32>(hash) % kPlaces;; at = (at + 1) % kPlaces) {
      const u32 number = places_[at].load(std::memory_order_acquire);
      if (number == 0) return nullptr;
      if (matches(entries_[number - 1])) return &entries_[number - 1];
    }
  }

  // The next one, to be filled and then added; nullptr: no room. Under the lock, as is add().
  Entry* next() { return count_ == kMost ? nullptr : &entries_[count_]; }
  const Entry* add(u64 hash) {
    u32 at = static_cast<u32>(hash) % kPlaces;
    while (places_[at].load(std::memory_order_relaxed)) at = (at + 1) % kPlaces;
    places_[at].store(static_cast<u16>(++count_), std::memory_order_release);
    return &entries_[count_ - 1];
  }

 private:
  u32 count_;                         // under the lock
  std::atomic<u16> places_[kPlaces];  // number of an entry, from 1; 0: free
  Entry entries_[kMost];
};

}  // namespace gputrace
