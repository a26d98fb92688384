// Calls that returned an error.
#include <fmt/format.h>

#include <map>

#include "analysis/findings/rules.h"
#include "analysis/words/result_names.h"

namespace gputrace {
namespace {

void find_call_errors(const LoadedRun& run, Findings& found) {
  constexpr u16 kNotReady = 600;
  struct Group {
    u64 count = 0;
    std::string level;
  };
  std::map<std::pair<std::string, u16>, Group> errors;
  bool driver = false;
  for (const ProcessTrace& process : run.processes) {
    for (const CallFacts& call : process.calls) {
      for (const auto& [result, count] : call.results) {
        if (result == kNotReady) continue;
        Group& group = errors[{call.name, result}];
        group.count += count;
        group.level = call.level;
        driver = driver || call.level == "driver";
      }
    }
  }
  for (const auto& [key, group] : errors) {
    // A runtime call passes on what the driver call within it said: said once.
    if (driver && group.level == "runtime") continue;
    found.push_back({"call-errors",
                     key.second == 2 ? Severity::Problem : Severity::Warning,
                     "api",
                     fmt::format("{} returned {} {} time{}", key.first, result_name(key.second), group.count,
                                 group.count == 1 ? "" : "s"),
                     "",
                     {{"call", key.first},
                      {"result", static_cast<i64>(key.second)},
                      {"name", result_name(key.second)},
                      {"count", number(group.count)}}});
  }
}

}  // namespace

extern constexpr FindingRule call_errors_rule = {
    .findings = {{"call-errors", "calls that returned an error, by call and error"}},
    .needs = {Need::Calls},
    .find = find_call_errors,
};

}  // namespace gputrace
