// The same launches again and again between two waits, with no allocation among them: one CUDA graph could be all of
// them.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/kernels/kernel_callers.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLeastLaunches = 5;  // shorter ones are hardly worth a capture

// A replay costs the host about what one launch costs: that much of the launch calls stays.
u64 saved_ns(const LaunchSequence& sequence) { return sequence.call_ns - sequence.call_ns / sequence.launches; }

std::string name_in(const ProcessTrace& process, u32 kernel) {
  if (kernel >= process.kernels.size() || process.kernels[kernel].shape.function == kNone) return "(not known)";
  return name_of(process.functions[process.kernels[kernel].shape.function]).brief;
}

// The line that mostly launches that kernel; empty: not known.
std::string site_of(const std::vector<KernelCallers>& callers, u32 kernel) {
  return kernel < callers.size() ? callers[kernel].site() : "";
}

std::optional<Finding> judge_graph_candidates(const ProcessTrace& process) {
  const LaunchSequence* best = nullptr;
  u64 candidates = 0, saved = 0;
  for (const LaunchSequence& sequence : process.loops.sequences) {
    if (sequence.launches < kLeastLaunches || sequence.times < kLoopTimes) continue;
    ++candidates;
    saved += saved_ns(sequence);
    if (!best || saved_ns(sequence) > saved_ns(*best)) best = &sequence;
  }
  if (!best) return {};
  Finding finding{
      "graph-candidates",
      Severity::Hint,
      "launches",
      fmt::format(
          "{} repeats the same {} launches {} times between waits, without an allocation ({} … {}): {} in the "
          "launch calls of {} sequence{}, and the host's time from one to the next, that CUDA graphs would save",
          name_of(process), human_count(best->launches), human_count(best->times), name_in(process, best->first),
          name_in(process, best->last), human_nanos(static_cast<Nanos>(saved)), candidates, candidates == 1 ? "" : "s"),
      advise(Advice::ReplayGraph, process),
      {{"launches", number(best->launches)},
       {"times", number(best->times)},
       {"first", name_in(process, best->first)},
       {"last", name_in(process, best->last)},
       {"sequences", number(candidates)},
       {"saved_host_ns", number(saved)}}};
  if (!costs(finding, process, WhatIf::Launches)) return {};
  if (const std::string unbroken = without_graph_breaks(process); !unbroken.empty()) finding.fix += "; " + unbroken;
  const auto callers = kernel_callers(process, FileNames(process));
  const std::string to = site_of(callers, best->last);
  finding.site = site_of(callers, best->first);
  if (!to.empty() && to != finding.site) finding.text += "; the last of them at " + to;
  finding.evidence.emplace_back("last_site", to);
  return finding;
}

void find_graph_candidates(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_graph_candidates); }

}  // namespace

extern constexpr FindingRule graph_candidates_rule = {
    .findings = {{"graph-candidates",
                  "the same launches again and again between two waits: one CUDA graph could be all of them"}},
    .needs = {Need::Calls},
    .find = find_graph_candidates,
    .of_the_loop = true,
};

}  // namespace gputrace
