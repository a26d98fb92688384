#include "analysis/findings/findings.h"

#include <algorithm>
#include <stdexcept>

#include "analysis/findings/rules.h"

namespace gputrace {

#define GT_FINDING(rule) extern const FindingRule rule##_rule;
#include "analysis/findings/list.def"

std::span<const FindingRule* const> all_rules() {
  static constexpr const FindingRule* kRules[] = {
#define GT_FINDING(rule) &rule##_rule,
#include "analysis/findings/list.def"
  };
  return kRules;
}

void ask(const FindingRule& rule, const LoadedRun& run, Findings& found) {
  if (why_not_met(rule.needs, run)) return;
  const std::size_t before = found.size();
  rule.find(run, found);
  for (std::size_t i = before; i < found.size(); ++i) {
    const auto same = [&](const FindingKind& kind) { return found[i].id == kind.id; };
    if (std::none_of(rule.findings.begin(), rule.findings.end(), same))
      throw std::logic_error("finding " + found[i].id + " is none that its rule declares");
  }
}

std::vector<Finding> find_findings(const LoadedRun& run) {
  Findings found;
  for (const FindingRule* rule : all_rules()) ask(*rule, run, found);
  for (Finding& finding : found) {
    const auto told = [](const auto& each) { return each.first == "gain_ns"; };
    if (finding.gain_ns && std::none_of(finding.evidence.begin(), finding.evidence.end(), told))
      finding.evidence.emplace_back("gain_ns", number(finding.gain_ns));
  }
  std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    // What all other numbers rest on: records that were dropped, files that are damaged.
    const bool data = a.section.compare(0, 7, "quality") == 0, other_data = b.section.compare(0, 7, "quality") == 0;
    if (data != other_data) return data;
    if (a.gain_ns != b.gain_ns) return a.gain_ns > b.gain_ns;
    // What says what to do comes before what only says how much.
    return !a.fix.empty() && b.fix.empty();
  });
  return found;
}

}  // namespace gputrace
