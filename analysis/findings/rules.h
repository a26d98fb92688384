// The rules behind the findings, and what they share. A rule looks at the loaded traces and adds what it found; it
// never prints and never throws. One word in list.def, one function `void NAME_rule(const LoadedTrace&, Findings&)` in
// findings/NAME.cpp.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/findings/findings.h"
#include "analysis/table/table.h"

namespace gputrace {

using Findings = std::vector<Finding>;

#define GT_FINDING(rule) void rule##_rule(const LoadedTrace& trace, Findings& found);
#include "analysis/findings/list.def"

// Gates: below them a pattern is start-up, not a loop.
inline constexpr u64 kLoopTimes = 16;         // times that work was launched between two such calls
inline constexpr double kCostlyShare = 0.01;  // of the wall time: below it a pattern is worth a hint, not a warning

inline double wall_seconds(const LoadedTrace& trace) {
  return static_cast<double>(trace.wall_end - trace.wall_begin) / 1e9;
}
inline double per_second(u64 count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

}  // namespace gputrace
