// What is ours: device collection that kept the program waiting when it began, and options that were not understood.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLeast = 300'000'000;  // ns; below it nobody looks for it

void find_slow_collection_start(const LoadedRun& run, Findings& found) {
  u64 longest = 0;
  const ProcessTrace* where = nullptr;
  for (const ProcessTrace& process : run.processes) {
    for (const DeviceOverheadSum& sum : process.device.overhead) {
      if (sum.kind != static_cast<u32>(OverheadKind::OwnSetup) || sum.total_ns <= longest) continue;
      longest = sum.total_ns;
      where = &process;
    }
  }
  if (longest < kLeast) return;
  found.push_back({"slow-collection-start",
                   Severity::Warning,
                   "overview",
                   fmt::format("the program waited {} for CUPTI to be opened and switched on{}: that is ours, not the "
                               "program's, and lies before the "
                               "call in which it made its first context (or opened the window)",
                               human_nanos(static_cast<Nanos>(longest)),
                               run.processes.size() > 1 ? fmt::format(" (pid {})", where->who.pid) : ""),
                   "leave the start-up out of what you measure, or trace without device times (GPUTRACE_COLLECT=api)",
                   {{"total_ns", number(longest)}}});
}

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

void find_collection(const LoadedRun& run, Findings& found) {
  find_slow_collection_start(run, found);
  find_option_warnings(run, found);
}

}  // namespace

extern constexpr FindingRule collection_rule = {
    .findings = {{"slow-collection-start", "opening CUPTI and its first switching on kept the program waiting"},
                 {"option", "an option that was not understood; its default was used"}},
    .needs = {},
    .find = find_collection,
};

}  // namespace gputrace
