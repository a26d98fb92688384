// The events of a loop as a text: each symbol a small number, each run of two and three symbols likewise. What comes
// between two places of it is compared by the runs of three that it holds.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/facts/step_facts.h"
#include "analysis/steps/numbering.h"

namespace gputrace {

class LoopText {
 public:
  explicit LoopText(std::span<const LoopEvent> events) : events_(events) {
    Numbering known;
    runs_[0].ids.reserve(events.size());
    for (const LoopEvent& event : events) runs_[0].ids.push_back(known.of(event.symbol));
    runs_[0].different = known.size();
    for (std::size_t i = 1; i < std::size(runs_); ++i) runs_[i] = extended(runs_[i - 1], i);
  }

  std::size_t size() const { return events_.size(); }
  const LoopEvent& event(std::size_t at) const { return events_[at]; }
  u32 symbol(std::size_t at) const { return runs_[0].ids[at]; }
  std::size_t symbols() const { return runs_[0].different; }
  // Of runs of `length` (1…3) symbols, by the place of their first; the last ones are cut off by the end.
  const std::vector<u32>& runs(std::size_t length) const { return runs_[length - 1].ids; }
  std::size_t different_runs(std::size_t length) const { return runs_[length - 1].different; }

  // How often what follows three symbols is what mostly follows them, where these come more than once: 1 where each turn is like the
  // others, 0 where nothing comes again.
  double predictability() const {
    const std::vector<u32>& threes = runs(3);
    const auto [fours, different_fours] = extended(runs_[2], 3);
    std::vector<u32> of_four(different_fours), all(different_runs(3)), most(different_runs(3));
    for (std::size_t i = 0; i < fours.size(); ++i) {
      ++all[threes[i]];
      most[threes[i]] = std::max(most[threes[i]], ++of_four[fours[i]]);
    }
    u64 usual = 0, again = 0;
    for (std::size_t three = 0; three < all.size(); ++three) {
      if (all[three] > 1) usual += most[three], again += all[three];
    }
    return again ? static_cast<double>(usual) / static_cast<double>(again) : 0;
  }

 private:
  struct Runs {
    std::vector<u32> ids;
    std::size_t different = 0;
  };
  // Runs longer by one than those of `length`.
  Runs extended(const Runs& shorter, std::size_t length) const {
    if (events_.size() <= length) return {};
    constexpr std::size_t kAhead = 16;   // where most runs differ, the table is larger than the nearest cache
    Numbering known(shorter.different);  // each of those begins a longer one, but for the last
    const std::size_t count = events_.size() - length;
    const u32 *const first = shorter.ids.data(), *const next = runs_[0].ids.data() + length;
    const auto key = [&](std::size_t i) { return u64{first[i]} << 32 | next[i]; };
    u64 hashes[kAhead];  // of the next ones
    for (std::size_t i = 0; i < std::min(count, kAhead); ++i) hashes[i] = known.hash(key(i));
    Runs longer{std::vector<u32>(count), 0};
    for (std::size_t i = 0; i < count; ++i) {
      u64& hash = hashes[i % kAhead];
      longer.ids[i] = known.of(key(i), hash);
      if (i + kAhead >= count) continue;
      hash = known.hash(key(i + kAhead));
      known.expect(hash);
    }
    longer.different = known.size();
    return longer;
  }

  std::span<const LoopEvent> events_;
  Runs runs_[3];
};

// A piece of a text, [begin, end).
struct Piece {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// What most pieces of a text hold.
class UsualPiece {
 public:
  UsualPiece(const LoopText& text, std::span<const Piece> pieces) : text_(text), seen_(text.different_runs(3), 0) {
    std::vector<u32> in_pieces(seen_.size());
    for (const Piece& piece : pieces) for_each(piece, [&](u32 run) { ++in_pieces[run]; });
    usual_.resize(in_pieces.size());
    for (std::size_t run = 0; run < in_pieces.size(); ++run) {
      usual_[run] = in_pieces[run] * 2 > pieces.size();
      runs_ += usual_[run];
    }
  }

  // Runs that both hold, of those that any of them holds: 0…1.
  double likeness(const Piece& piece) {
    std::size_t both = 0, own = 0;
    for_each(piece, [&](u32 run) { ++own, both += usual_[run]; });
    const std::size_t any = runs_ + own - both;
    return any ? static_cast<double>(both) / static_cast<double>(any) : 0;
  }

 private:
  // Each run that begins in the piece, once.
  template <typename Visit>
  void for_each(const Piece& piece, Visit&& visit) {
    ++stamp_;
    const std::vector<u32>& runs = text_.runs(3);
    for (std::size_t i = piece.begin; i < std::min(piece.end, runs.size()); ++i) {
      if (seen_[runs[i]] == stamp_) continue;
      seen_[runs[i]] = stamp_;
      visit(runs[i]);
    }
  }

  const LoopText& text_;
  std::vector<u32> seen_;
  std::vector<bool> usual_;
  std::size_t runs_ = 0;
  u32 stamp_ = 0;
};

}  // namespace gputrace
