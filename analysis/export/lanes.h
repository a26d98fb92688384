// Slices that cross on one track cannot be shown there: readers nest them, and cut or lose what does not nest. Both
// classes say on which lane of a track a slice has room; lane 0 is the track itself.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.h"

namespace gputrace {

// Slices in the order of their starts, as of a stream: side by side, never within each other.
class StartLanes {
 public:
  std::size_t place(Nanos begin, Nanos end) {
    std::size_t lane = 0;
    while (lane < ends_.size() && begin < ends_[lane]) ++lane;
    if (lane == ends_.size()) ends_.push_back(end);
    ends_[lane] = end;
    return lane;
  }

 private:
  std::vector<Nanos> ends_;
};

// Slices in the order of their ends, as of calls: an outer one comes after those within it. What began at the very
// instant at which its outer one began counts as crossing: of two begins at one instant the first one told is the outer.
// Looks back at least kMost slices that lie in no other.
class EndLanes {
 public:
  std::size_t place(Nanos begin, Nanos end) {
    for (std::size_t lane = 0;; ++lane) {
      if (lane == lanes_.size()) lanes_.emplace_back();
      if (has_room(lanes_[lane], begin, end)) return put(lanes_[lane], begin, end), lane;
    }
  }

 private:
  static constexpr std::size_t kMost = 4096;
  struct Slice {
    Nanos begin, end;
  };
  using Lane = std::vector<Slice>;  // none within another, in order

  static bool has_room(const Lane& lane, Nanos begin, Nanos end) {
    std::size_t at = lane.size();
    while (at > 0 && lane[at - 1].begin > begin) --at;
    if (at < lane.size() && lane.back().end > end) return false;
    if (at == 0) return true;
    const Slice& before = lane[at - 1];
    return before.begin < begin && before.end <= begin;
  }
  static void put(Lane& lane, Nanos begin, Nanos end) {
    while (!lane.empty() && lane.back().begin > begin) lane.pop_back();
    if (lane.size() == 2 * kMost) lane.erase(lane.begin(), lane.begin() + kMost);
    lane.push_back({begin, end});
  }

  std::vector<Lane> lanes_;
};

}  // namespace gputrace
