// What is allocated, and what of it was when the sum was largest, each with its end: amortized a constant time a change, however
// often there is a new peak.
//   · Memory: O(most pieces that lived at any peak) + O(pieces that live now). One thread.
#pragma once

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/facts/memory_span.h"

namespace gputrace {

// The largest of what lived at a peak.
inline MemorySpans largest_spans(std::vector<MemorySpan> all) {
  std::sort(all.begin(), all.end(), [](const MemorySpan& a, const MemorySpan& b) {
    return std::tie(b.bytes, a.begin, a.address) < std::tie(a.bytes, b.begin, b.address);
  });
  MemorySpans spans;
  for (std::size_t at = kMaxMemorySpans; at < all.size(); ++at) ++spans.others, spans.other_bytes += all[at].bytes;
  if (all.size() > kMaxMemorySpans) all.resize(kMaxMemorySpans);
  spans.largest = std::move(all);
  return spans;
}

// Piece: has `Nanos begin, end`; the end is kStillAllocated until somebody sets it.
template <typename Piece>
class PiecesAtPeak {
 public:
  // `key`: of this one alone among those that live. What had it before has gone by now at the latest: its free was lost.
  void allocated(u64 key, Piece piece) {
    if (Piece* const before = freed(key)) before->end = piece.begin;
    Live& live = live_[key];
    live = {std::move(piece), kNone, static_cast<u32>(since_.size())};
    since_.push_back(key);
    if (since_.size() > 2 * live_.size() + kMostStale) forget_stale();
  }

  // Nobody lives by this key any more. Returns what lived at the newest peak, for its end to be set; nullptr: it did not.
  // Valid until the next call.
  Piece* freed(u64 key) {
    const auto found = live_.find(key);
    if (found == live_.end()) return nullptr;
    const u32 place = found->second.place;
    live_.erase(found);
    if (place == kNone) return nullptr;
    ended_.push_back(place);
    return &slots_[place].piece;
  }

  // What lives now is what lived at the peak.
  void reached() {
    for (const u32 place : ended_) slots_[place].is_free = true;
    free_.insert(free_.end(), ended_.begin(), ended_.end());
    ended_.clear();
    for (u32 at = 0; at < since_.size(); ++at) {
      const auto found = live_.find(since_[at]);
      if (found == live_.end() || found->second.since != at) continue;  // freed, or its address was given out again
      Live& live = found->second;
      live.since = kNone;
      if (free_.empty()) {
        live.place = static_cast<u32>(slots_.size());
        slots_.push_back({live.piece, false});
      } else {
        live.place = free_.back();
        free_.pop_back();
        slots_[live.place] = {live.piece, false};
      }
    }
    since_.clear();
  }

  std::vector<Piece> at_peak() const {
    std::vector<Piece> pieces;
    for (const Slot& slot : slots_) {
      if (!slot.is_free) pieces.push_back(slot.piece);
    }
    return pieces;
  }

 private:
  static constexpr u32 kNone = 0xffffffffu;
  static constexpr std::size_t kMostStale = 1024;
  struct Live {
    Piece piece;
    u32 place = kNone;  // in slots_: it lived at the newest peak
    u32 since = kNone;  // in since_
  };
  struct Slot {
    Piece piece;
    bool is_free = false;
  };

  void forget_stale() {
    u32 kept = 0;
    for (u32 at = 0; at < since_.size(); ++at) {
      const auto found = live_.find(since_[at]);
      if (found == live_.end() || found->second.since != at) continue;
      found->second.since = kept;
      since_[kept++] = since_[at];
    }
    since_.resize(kept);
  }

  std::unordered_map<u64, Live> live_;
  std::vector<u64> since_;   // keys allocated since the newest peak, some of them gone again
  std::vector<Slot> slots_;  // what lived at the newest peak
  std::vector<u32> ended_;   // slots of which the piece has gone since
  std::vector<u32> free_;
};

}  // namespace gputrace
