// What of a trace is counted.
#pragma once

#include <limits>

#include "base/types.h"

namespace gputrace {

// Calls that begin, and device operations that start, in [from, to). Definitions and allocations are followed from the
// start.
struct TimeWindow {
  Nanos from = std::numeric_limits<Nanos>::min();
  Nanos to = std::numeric_limits<Nanos>::max();
  bool whole() const { return from == std::numeric_limits<Nanos>::min() && to == std::numeric_limits<Nanos>::max(); }
  bool holds(Nanos time) const { return time >= from && time < to; }
};

}  // namespace gputrace
