// Calls that returned an error.
#include <fmt/format.h>

#include <map>
#include <set>

#include "analysis/facts/library_facts.h"
#include "analysis/findings/rules.h"
#include "analysis/lines/sites.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"
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

// What a kernel did; CUDA's documentation: "leaves the process in an inconsistent state", every later call returns it.
bool ends_the_context(u16 result) {
  switch (result) {
    case 700:  // illegal address
    case 702:  // launch timeout
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return true;
    default:
      return false;
  }
}

struct ErrorGroup {
  u64 count = 0;
  std::string level;
  bool went_on = true;  // every process that got it lived on
  std::string failure;  // failure_of() one that got it
  std::string site;     // of one that is known
};
using CallErrors = std::map<std::pair<std::string, u16>, ErrorGroup>;  // by call and result

// Calls that returned it, whoever returned it first: nobody knows which kernel it was.
void say_ended_context(u16 result, const CallErrors& errors, bool driver, Findings& found) {
  u64 calls = 0, times = 0;
  std::string first, failure, site;
  for (const auto& [key, group] : errors) {
    if (key.second != result || (driver && group.level == "runtime")) continue;
    if (calls++ == 0) first = key.first;
    times += group.count;
    if (failure.empty()) failure = group.failure;
    if (site.empty()) site = group.site;
  }
  const std::string others = calls > 1 ? " and " + counted(calls - 1, "other call") : "";
  Finding finding{
      "call-errors",
      Severity::Problem,
      "api",
      fmt::format("{}{} returned {}{}: a kernel did that before, and nothing works in its context afterwards{}", first,
                  others, result_name(result), times > 1 ? ", " + counted(times, "time") + " in all" : "", failure),
      "find the kernel: with CUDA_LAUNCH_BLOCKING=1 the call that launches it returns the error; compute-sanitizer "
      "tells what it did",
      {{"call", first}, {"result", static_cast<i64>(result)}, {"name", result_name(result)}, {"count", number(times)}}};
  finding.site = site;
  finding.ended_it = !failure.empty();
  found.push_back(std::move(finding));
}

void find_call_errors(const LoadedRun& run, Findings& found) {
  constexpr u16 kOutOfMemory = 2;
  CallErrors errors;
  bool driver = false;
  for (const ProcessTrace& process : run.processes) {
    for (const CallFacts& call : process.calls) {
      for (const auto& [result, count] : call.results) {
        if (is_plain_answer(call.level, call.name, result) || (result == kOutOfMemory && was_refused_memory(process)))
          continue;
        ErrorGroup& group = errors[{call.name, result}];
        group.count += count;
        group.level = call.level;
        group.went_on = group.went_on && !process.who.died;
        if (group.failure.empty()) group.failure = failure_of(process);
        const auto origin = call.error_origins.find(result);
        if (group.site.empty() && origin != call.error_origins.end())
          group.site = site_of_origin(process.lines, origin->second, FileNames(process));
        driver = driver || call.level == "driver";
      }
    }
  }
  std::set<u16> ended;
  for (const auto& [key, group] : errors) {
    // A runtime call passes on what the driver call within it said: said once.
    if (driver && group.level == "runtime") continue;
    if (ends_the_context(key.second)) {
      if (ended.insert(key.second).second) say_ended_context(key.second, errors, driver, found);
      continue;
    }
    const bool taken = is_refusal(key.second) && group.went_on;
    Finding finding{
        "call-errors",
        key.second == kOutOfMemory ? Severity::Problem
        : taken                    ? Severity::Hint
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
    finding.ended_it = key.second == kOutOfMemory && !group.failure.empty();
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
