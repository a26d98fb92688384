// Ticks to nanoseconds for a pass in time order: remembers the straight piece of the clock that it is on, so that a
// conversion is a multiplication. Gives what ClockMap::nanos gives, within 1 ns. One thread.
#pragma once

#include <algorithm>
#include <limits>

#include "analysis/read/time_window.h"
#include "trace/clock_map.h"
#include "trace/record.h"

namespace gputrace {

class TickClock {
 public:
  explicit TickClock(const ClockMap& map) : map_(map) {}

  [[gnu::always_inline]] inline Nanos nanos(Ticks ticks) { return holds(ticks) ? straight(ticks) : find(ticks); }

  // From when to when the record says that it was; one that ends before it begins has no length.
  [[gnu::always_inline]] inline TimeSpan span(const RecordHeader& record) {
    const Nanos begin = nanos(record.begin);
    if (record.end <= record.begin) [[unlikely]]
      return {begin, begin};
    return {begin, std::max(begin, nanos(record.end))};
  }
  // The end of that alone.
  [[gnu::always_inline]] inline Nanos end(const RecordHeader& record) {
    return record.begin == record.end ? nanos(record.end) : span(record).to;
  }

 private:
  static constexpr u64 kLongest = std::numeric_limits<i64>::max();  // a signed number becomes a double in one step

  bool holds(Ticks ticks) const { return ticks - begin_ < span_; }  // wraps around below begin_
  Nanos straight(Ticks ticks) const {
    return base_ + static_cast<Nanos>(static_cast<double>(static_cast<i64>(ticks - begin_)) * rate_);
  }

  [[gnu::noinline]] Nanos find(Ticks ticks) {
    const auto& anchors = map_.anchors();
    const auto after = std::upper_bound(anchors.begin(), anchors.end(), ticks,
                                        [](Ticks t, const Anchor& anchor) { return t < anchor.ticks; });
    if (after == anchors.begin() || after == anchors.end())
      return map_.nanos(ticks);  // outside: rare, and the map's to extend
    const Anchor& before = *(after - 1);
    if (after->ticks - before.ticks > kLongest) return map_.nanos(ticks);
    begin_ = before.ticks;
    span_ = after->ticks - before.ticks;
    base_ = map_.nanos(before.ticks);
    rate_ = static_cast<double>(map_.nanos(after->ticks) - base_) / static_cast<double>(span_);
    return holds(ticks) ? straight(ticks) : map_.nanos(ticks);
  }

  const ClockMap& map_;
  Ticks begin_ = 0;
  u64 span_ = 0;
  Nanos base_ = 0;
  double rate_ = 0;
};

}  // namespace gputrace
