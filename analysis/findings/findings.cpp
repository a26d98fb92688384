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
    if (a.severity != b.severity) return a.severity > b.severity;
    // What all other numbers rest on: records that were dropped, files that are damaged.
    const bool data = a.section.compare(0, 7, "quality") == 0, other_data = b.section.compare(0, 7, "quality") == 0;
    if (data != other_data) return data;
    // What says what to do comes before what only says how much.
    const bool gains = a.gain_ns && b.gain_ns;
    if (gains && a.fix.empty() != b.fix.empty()) return b.fix.empty();
    return a.gain_ns > b.gain_ns;
  });
  return found;
}

}  // namespace gputrace
