// What devices did at each instant, and what the host did while they did nothing, for steps that are found once the run is
// known. In time order or nearly so.
//   · Memory: kMost spans of 16 bytes, few of 40. Of longer runs slices of time at equal distances are kept, and Activities::covers()
//     says of which times all is known.
//   · One thread.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

class ActivityLog {
 public:
  static constexpr std::size_t kMost = 1u << 20;
  static constexpr u64 kMostPieces = 1u << 16;  // of one span, each of 4.3 s at most: 3 days
  static constexpr Nanos kSlices = 16;          // of the time at which it was full first

  // At most that many spans will come. Room for them is asked for at once and touched where it is written: a vector that grows
  // touches twice as much.
  void expect(u64 spans) { made_.spans.reserve(std::min<u64>(spans, kMost)); }

  void add(Nanos begin, Nanos end, Activity what, u32 number = 0, Nanos called = 0) {
    if (begin >= end || full_) return;
    if (made_.width != 0 && !keeps(begin) && !keeps(end)) return;
    const u32 word = static_cast<u32>(what) << 28 | (number & 0x0fffffffu);
    const u64 length = static_cast<u64>(end) - static_cast<u64>(begin);
    if (length <= kLongest) [[likely]]
      made_.spans.add({begin, called, static_cast<u32>(length), word});
    else
      add_pieces(begin, end, word, called);
    if (made_.spans.size() >= kMost) thin_out();
  }

  Activities finish() { return std::move(made_); }

 private:
  static constexpr Nanos kLongest = std::numeric_limits<u32>::max();

  [[gnu::noinline]] void add_pieces(Nanos begin, Nanos end, u32 word, Nanos called) {
    if ((static_cast<u64>(end) - static_cast<u64>(begin)) / kLongest > kMostPieces) {
      full_ = true, made_.until = begin;  // days of nothing, or a stamp that is none
      return;
    }
    for (; begin < end; begin += std::min(kLongest, end - begin))
      made_.spans.add({begin, called, static_cast<u32>(std::min(kLongest, end - begin)), word});
  }

  // As Activities has it: times come in order, and two divisions for each cost more than the rest of add().
  bool keeps(Nanos time) {
    if (time < made_.origin) return false;
    if (time < newest_.begin || time >= newest_.end) {
      newest_.begin = time - (time - made_.origin) % made_.width;
      newest_.end = newest_.begin + made_.width;
      newest_.kept = made_.keeps(time);
    }
    return newest_.kept;
  }

  [[gnu::noinline]] void thin_out() {
    if (made_.width == 0) {
      Nanos last = std::numeric_limits<Nanos>::min();
      made_.origin = std::numeric_limits<Nanos>::max();
      made_.spans.for_each([&](const ActivitySpan& span) {
        made_.origin = std::min(made_.origin, span.begin);
        last = std::max(last, span.end());
      });
      made_.width = std::max<Nanos>(1, (last - made_.origin) / kSlices);
    }
    made_.stride *= 2;
    newest_ = {};
    made_.spans.keep_if([this](const ActivitySpan& span) { return keeps(span.begin) || keeps(span.end()); });
    if (made_.spans.size() < kMost) return;
    full_ = true;  // one slice alone has more
    made_.until = made_.spans.newest_begin();
  }

  struct Slice {
    Nanos begin = 0, end = 0;
    bool kept = false;
  };

  Activities made_;
  Slice newest_;  // that was asked for
  bool full_ = false;
};

}  // namespace gputrace
