// The gaps of one device, until it is known whether work whose record is missing may have run in them: such a gap is
// neither idle nor busy, it is unknown.
//   · Gaps come in order and do not overlap; the times of lost work come when what came after it is known, so later than
//     the gaps that they touch.
//   · Memory: kMostHeld gaps; times of lost work are united when there are more than that many of them.
//   · One thread.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/facts/device_facts.h"
#include "analysis/gaps/gap_division.h"
#include "base/types.h"

namespace gputrace {

class LostWork {
 public:
  static constexpr std::size_t kMostHeld = 64u << 10;

  // Work that nobody told may have run in [begin, end).
  void may_have_run(Nanos begin, Nanos end) {
    if (begin >= end) return;
    if (lost_.size() >= kMostHeld) unite();
    lost_.push_back({begin, end});
  }

  struct Held {
    IdleGap gap;
    std::span<const GapDivision::Piece> pieces;
  };
  // True: there are so many that the older half has to be settled.
  bool hold(const IdleGap& gap, const std::vector<GapDivision::Piece>& pieces) {
    held_.push_back({gap, static_cast<u32>(pieces.size())});
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    return held_.size() >= kMostHeld;
  }
  // Where the older half ends; at least one gap is held.
  Nanos half() const { return held_[(held_.size() - 1) / 2].gap.end; }

  // Gives each held gap that ends by `until`, and whether lost work may have run in it.
  template <typename Give>
  void settle(Nanos until, Give&& give) {
    unite();
    auto lost = lost_.begin();
    auto gap = held_.begin();
    std::size_t pieces = 0;
    for (; gap != held_.end() && gap->gap.end <= until; ++gap) {
      while (lost != lost_.end() && lost->end <= gap->gap.begin) ++lost;
      give(Held{gap->gap, {pieces_.data() + pieces, gap->pieces}}, lost != lost_.end() && lost->begin < gap->gap.end);
      pieces += gap->pieces;
    }
    held_.erase(held_.begin(), gap);
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(pieces));
    lost_.erase(lost_.begin(), lost);
  }

 private:
  struct Time {
    Nanos begin, end;
  };
  struct Waiting {
    IdleGap gap;
    u32 pieces;  // how many of pieces_ are its own
  };

  void unite() {
    std::sort(lost_.begin(), lost_.end(), [](const Time& a, const Time& b) { return a.begin < b.begin; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < lost_.size(); ++i) {
      if (lost_[i].begin <= lost_[last].end)
        lost_[last].end = std::max(lost_[last].end, lost_[i].end);
      else
        lost_[++last] = lost_[i];
    }
    if (!lost_.empty()) lost_.resize(last + 1);
  }

  std::vector<Waiting> held_;
  std::vector<GapDivision::Piece> pieces_;  // of all that are held, in their order
  std::vector<Time> lost_;
};

}  // namespace gputrace
