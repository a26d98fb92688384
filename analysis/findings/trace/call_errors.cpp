// Calls that returned an error.
#include <fmt/format.h>

#include <map>

#include "analysis/findings/rules.h"
#include "analysis/lines/sites.h"
#include "analysis/words/result_names.h"

namespace gputrace {
namespace {

// Answers to a question whether something can be had: nothing is broken by them.
bool is_refusal(u16 result) {
  switch (result) {
    case 1:    // invalid value
    case 101:  // invalid device
    case 209:  // no binary for the device
    case 218:  // invalid PTX
    case 222:  // unsupported PTX version
    case 301:  // file not found
    case 302:  // shared object: symbol not found
    case 500:  // not found
    case 704:  // peer access is already enabled
    case 705:  // peer access is not enabled
    case 712:  // host memory is already registered
    case 713:  // host memory is not registered
    case 801:  // not supported
      return true;
    default:
      return false;
  }
}

void find_call_errors(const LoadedRun& run, Findings& found) {
  constexpr u16 kNotReady = 600;
  struct Group {
    u64 count = 0;
    std::string level;
    bool went_on = true;  // every process that got it lived on
    std::string site;     // of one that is known
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
        group.went_on = group.went_on && !process.who.died;
        const auto origin = call.error_origins.find(result);
        if (group.site.empty() && origin != call.error_origins.end())
          group.site = site_of_origin(process.lines, origin->second, FileNames(process));
        driver = driver || call.level == "driver";
      }
    }
  }
  for (const auto& [key, group] : errors) {
    // A runtime call passes on what the driver call within it said: said once.
    if (driver && group.level == "runtime") continue;
    const bool taken = is_refusal(key.second) && group.went_on;
    Finding finding{
        "call-errors",
        key.second == 2 ? Severity::Problem
        : taken         ? Severity::Hint
                        : Severity::Warning,
        "api",
        fmt::format("{} returned {} {} time{}{}", key.first, result_name(key.second), group.count,
                    group.count == 1 ? "" : "s", taken ? ": a refusal, as probes expect; nothing ended by it" : ""),
        "",
        {{"call", key.first},
         {"result", static_cast<i64>(key.second)},
         {"name", result_name(key.second)},
         {"count", number(group.count)}}};
    finding.site = group.site;
    found.push_back(std::move(finding));
  }
}

}  // namespace

extern constexpr FindingRule call_errors_rule = {
    .findings = {{"call-errors", "calls that returned an error, by call and error"}},
    .needs = {Need::Calls},
    .find = find_call_errors,
};

}  // namespace gputrace
