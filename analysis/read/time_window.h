// What of a trace is counted.
#pragma once

#include <limits>
#include <optional>

#include "base/types.h"

namespace gputrace {

// [from, to)
struct TimeSpan {
  Nanos from = std::numeric_limits<Nanos>::min();
  Nanos to = std::numeric_limits<Nanos>::max();
  bool holds(Nanos time) const { return time >= from && time < to; }
};

// Calls that begin, and device operations that start, in [from, to). Definitions and allocations are followed from the
// start.
struct TimeWindow {
  Nanos from = TimeSpan{}.from;
  Nanos to = TimeSpan{}.to;
  std::optional<TimeSpan> operations = {};  // of those, where a host that runs far ahead gave them long before

  bool whole() const { return from == TimeSpan{}.from && to == TimeSpan{}.to; }
  bool holds(Nanos time) const { return TimeSpan{from, to}.holds(time); }
  TimeSpan of_operations() const { return operations.value_or(TimeSpan{from, to}); }
};

}  // namespace gputrace
