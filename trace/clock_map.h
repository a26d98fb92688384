// Ticks of the record clock → CLOCK_MONOTONIC and CLOCK_REALTIME nanoseconds, from a trace's anchors.
//   · Between two anchors linear; before the first and after the last one, by the nearest rate. Never decreasing.
//   · Anchors that contradict their neighbours, or were taken while the sidecar was kept from running, are left out.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace gputrace {

class ClockMap {
 public:
  ClockMap() = default;
  // Any order; hostile values are sorted out.
  ClockMap(ClockKind kind, std::vector<Anchor> anchors);

  bool known() const;  // false: no usable anchors; nanos() then returns ticks as they are and error_ns() says so
  Nanos nanos(Ticks ticks) const;         // CLOCK_MONOTONIC of the traced host
  Nanos realtime(Nanos monotonic) const;  // CLOCK_REALTIME for a CLOCK_MONOTONIC time; 0: no anchors
  // |nanos(ticks) - true CLOCK_MONOTONIC| is at most this, if the clock's rate is steady between two anchors; -1: not
  // known.
  Nanos error_ns(Ticks ticks) const;
  // The largest error_ns() within [begin, end]; -1: not known.
  Nanos max_error_ns(Ticks begin, Ticks end) const;

  const std::vector<Anchor>& anchors() const { return anchors_; }  // those in use, by time

 private:
  std::size_t segment(Ticks ticks) const;

  ClockKind kind_ = ClockKind::Monotonic;
  std::vector<Anchor> anchors_;
};

}  // namespace gputrace
