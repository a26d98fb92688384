// Options that were not understood.
#include <algorithm>

#include "analysis/findings/rules.h"

namespace gputrace {
namespace {

void find_option_warnings(const LoadedRun& run, Findings& found) {
  std::vector<std::string> said;
  for (const ProcessTrace& process : run.processes) {
    for (const std::string& warning : process.warnings) {
      if (std::find(said.begin(), said.end(), warning) != said.end()) continue;
      said.push_back(warning);
      found.push_back({"option", Severity::Warning, "quality-notes", warning, "", {}});
    }
  }
}

}  // namespace

extern constexpr FindingRule option_warnings_rule = {
    .findings = {{"option", "an option that was not understood; its default was used"}},
    .needs = {},
    .find = find_option_warnings,
};

}  // namespace gputrace
