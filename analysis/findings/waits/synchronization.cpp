// Waits after which the thread's next work is a launch. Needless ones: no copy to the host was given before them. Those for a result
// of at most 64 KiB: they are needed where they stand, and could stand elsewhere.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_synchronization(const ProcessTrace& process) {
  const LaunchLoopFacts& loops = process.loops;
  if (loops.needless_waits < kLoopTimes) return {};
  const IdleShare idle = idle_of(process, IdleCause::Synchronization);
  std::string text = fmt::format(
      "{} of {} waits for the device come before more launches, with no copy to the host for them to wait for",
      human_count(loops.needless_waits), human_count(loops.waits));
  if (span_of(process)) {
    text += fmt::format("; the device is idle in waits for {}{}", human_nanos(static_cast<Nanos>(idle.total_ns)),
                        idle.call.empty() ? "" : ", most by " + idle.call);
  }
  Finding finding{"needless-synchronization",
                  Severity::Hint,
                  "sync",
                  std::move(text),
                  "wait only where the host needs a result; order streams by events (cudaStreamWaitEvent) instead",
                  {{"waits", number(loops.waits)}, {"needless", number(loops.needless_waits)}}};
  if (span_of(process)) {
    finding.evidence.emplace_back("gpu_idle_ns", number(idle.total_ns));
    finding.evidence.emplace_back("gaps", number(idle.count));
  }
  if (!costs(finding, process, WhatIf::Waits)) return {};
  finding.site = site_of_most(process, loops.needless_by_origin);
  finding.fix += advise(Advice::OnlyForTimes, process);
  return finding;
}

std::optional<Finding> judge_results(const ProcessTrace& process) {
  const LaunchLoopFacts& loops = process.loops;
  if (loops.result_waits < kLoopTimes) return {};
  u64 spent = 0;
  for (const auto& [origin, length] : loops.results_by_origin.of) spent += length;
  Finding finding{
      "result-waits",
      Severity::Hint,
      "sync",
      fmt::format("{} times the host waits {} in all for a small result (at most 64 KiB) before it launches more: "
                  "it cannot work ahead of the device",
                  human_count(loops.result_waits), human_nanos(static_cast<Nanos>(spent))),
      "keep the result on the device and read it every so many steps, or copy it to pinned memory and look "
      "at it a step later",
      {{"waits", number(loops.result_waits)}, {"wait_ns", number(spent)}}};
  if (!costs(finding, process, WhatIf::Results)) return {};
  finding.site = site_of_most(process, loops.results_by_origin);
  finding.fix += advise(Advice::ReadsResults, process);
  return finding;
}

void find_synchronization(const LoadedRun& run, Findings& found) {
  add_worst(run, found, judge_synchronization);
  add_worst(run, found, judge_results);
}

}  // namespace

extern constexpr FindingRule synchronization_rule = {
    .findings = {{"needless-synchronization",
                  "waits after which the thread only launches more, and before which it asked for nothing"},
                 {"result-waits",
                  "waits in a loop for a small result (at most 64 KiB), which keep the host from working ahead"}},
    .needs = {Need::Calls},
    .find = find_synchronization,
    .of_the_loop = true,
};

}  // namespace gputrace
