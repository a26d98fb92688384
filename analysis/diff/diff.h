// Two reports held against each other: did the change help? Sections and findings are matched by what their rows are
// about; a difference of steps is told only beyond their spread.
#pragma once

#include <optional>
#include <string>

#include "analysis/table/table.h"

namespace gputrace {

// What decides: the median of steps where both runs have some, else the span of the devices, else the wall.
struct Change {
  std::string what;  // "step", "device span", "wall"; empty: nothing to compare
  double a_ns = 0, b_ns = 0;
  // Standard error of the difference, from the spread of the steps; nothing: each was measured once.
  std::optional<double> error_ns;
  double ratio() const { return a_ns > 0 ? b_ns / a_ns - 1 : 0; }
  // Beyond twice the standard error; where there is none, any difference counts.
  bool told() const;
};

struct Diff {
  Change change;
  bool per_step = false;  // sums are divided by each run's number of steps
  Report report;          // sections `summary`, `findings`, then those of both reports that can be matched
};

// The sections that the reports must have been made with.
const std::vector<std::string>& sections_for_diff();

Diff diff_of(const Report& a, const Report& b);

}  // namespace gputrace
