// Options that were not understood.
#include <algorithm>

#include "analysis/findings/rules.h"

namespace gputrace {

void option_warnings_rule(const LoadedTrace& trace, Findings& found) {
  std::vector<std::string> said;
  for (const ProcessTrace& process : trace.processes) {
    for (const std::string& warning : process.warnings) {
      if (std::find(said.begin(), said.end(), warning) != said.end()) continue;
      said.push_back(warning);
      found.push_back({"option", Severity::Warning, "quality-notes", warning, "", {}});
    }
  }
}

}  // namespace gputrace
