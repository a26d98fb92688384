#include "analysis/findings/findings.h"

#include <algorithm>

#include "analysis/findings/rules.h"

namespace gputrace {

std::vector<Finding> find_findings(const LoadedTrace& trace) {
  Findings found;
#define GT_FINDING(rule) rule##_rule(trace, found);
#include "analysis/findings/list.def"
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return found;
}

}  // namespace gputrace
