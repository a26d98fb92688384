// What lived when most did, against a list of all changes that is read anew for each answer.
#include "analysis/memory/pieces_at_peak.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace gputrace {
namespace {

using Key = std::tuple<u64, Nanos, u64, Nanos>;

std::vector<Key> sorted(const std::vector<MemorySpan>& spans) {
  std::vector<Key> keys;
  keys.reserve(spans.size());
  for (const MemorySpan& span : spans) keys.emplace_back(span.address, span.begin, span.bytes, span.end);
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Few addresses, so that they are given out again; frees that are lost; sums that come back to the same peak.
TEST(PiecesAtPeak, AreThoseThatLivedThen) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    PiecesAtPeak<MemorySpan> pieces;
    std::vector<MemorySpan> all;        // that ever lived
    std::map<u64, std::size_t> living;  // by address: which of them
    u64 sum = 0, peak = 0;
    Nanos peak_at = -1;
    for (Nanos at = 0; at < 600; ++at) {
      const u64 address = 1 + random() % 24;
      const auto old = living.find(address);
      if (random() % 2 == 0 || old == living.end()) {
        if (old != living.end()) {  // its free was lost: it has gone by now
          sum -= all[old->second].bytes;
          all[old->second].end = at;
        }
        const MemorySpan span{"", address, 1 + random() % 4, 0, at};
        living[address] = all.size();
        all.push_back(span);
        pieces.allocated(address, span);
        sum += span.bytes;
      } else {
        sum -= all[old->second].bytes;
        all[old->second].end = at;
        living.erase(old);
        if (MemorySpan* const span = pieces.freed(address)) span->end = at;
      }
      if (sum <= peak) continue;
      peak = sum, peak_at = at;
      pieces.reached();
    }
    std::vector<MemorySpan> expected;
    for (const MemorySpan& span : all) {
      if (span.begin <= peak_at && span.end > peak_at) expected.push_back(span);
    }
    u64 bytes = 0;
    for (const MemorySpan& span : pieces.at_peak()) bytes += span.bytes;
    ASSERT_EQ(bytes, peak) << "seed " << seed;
    ASSERT_EQ(sorted(pieces.at_peak()), sorted(expected)) << "seed " << seed;
  }
}

// One address again and again beside a peak of long ago: what went meanwhile is forgotten, and nothing else is.
TEST(PiecesAtPeak, SurvivesManyChangesBelowThePeak) {
  PiecesAtPeak<MemorySpan> pieces;
  pieces.allocated(1, {"", 1, 100, 0, 0});
  pieces.reached();
  for (Nanos at = 1; at <= 100'000; ++at) {
    pieces.allocated(2, {"", 2, 1, 0, at});
    pieces.freed(2);
  }
  pieces.allocated(3, {"", 3, 1, 0, 200'000});
  ASSERT_EQ(sorted(pieces.at_peak()), (std::vector<Key>{{1, 0, 100, kStillAllocated}}));
  pieces.reached();
  ASSERT_EQ(sorted(pieces.at_peak()),
            (std::vector<Key>{{1, 0, 100, kStillAllocated}, {3, 200'000, 1, kStillAllocated}}));
}

TEST(LargestSpans, KeepsTheLargestAndSumsTheOthers) {
  std::vector<MemorySpan> all;
  for (u64 bytes = 1; bytes <= kMaxMemorySpans + 3; ++bytes) all.push_back({"", bytes, bytes, 0, 0});
  const MemorySpans spans = largest_spans(all);
  EXPECT_EQ(spans.largest.size(), kMaxMemorySpans);
  EXPECT_EQ(spans.largest.front().bytes, kMaxMemorySpans + 3);
  EXPECT_EQ(spans.largest.back().bytes, 4u);
  EXPECT_EQ(std::make_pair(spans.others, spans.other_bytes), std::make_pair(u64{3}, u64{1 + 2 + 3}));
}

}  // namespace
}  // namespace gputrace
