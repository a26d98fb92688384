#include "analysis/findings/findings.h"

#include <algorithm>

#include "analysis/findings/rules.h"

namespace gputrace {

std::vector<Finding> find_findings(const LoadedTrace& trace) {
  Findings found;
#define GT_FINDING(rule) rule##_rule(trace, found);
#include "analysis/findings/list.def"
  for (Finding& finding : found) {
    if (finding.gain_ns) finding.evidence.emplace_back("gain_ns", number(finding.gain_ns));
  }
  std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.gain_ns > b.gain_ns;
  });
  return found;
}

}  // namespace gputrace
