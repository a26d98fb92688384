// Waits that nothing needed: no copy to the host was given before them, and the thread's next work is a launch.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
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
  finding.site = site_of_idle(process, IdleCause::Synchronization);
  return finding;
}

void find_synchronization(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_synchronization); }

}  // namespace

extern constexpr FindingRule synchronization_rule = {
    .findings = {{"needless-synchronization",
                  "waits after which the thread only launches more, and before which it asked for nothing"}},
    .needs = {Need::Calls},
    .find = find_synchronization,
    .of_the_loop = true,
};

}  // namespace gputrace
