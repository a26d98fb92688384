// Waits after which the thread only launches more: the host could have launched ahead.
#include <fmt/format.h>

#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

void find_synchronization(const LoadedRun& run, Findings& found) {
  u64 waits = 0, before_launches = 0;
  for (const ProcessTrace& process : run.processes) {
    waits += process.loops.waits;
    before_launches += process.loops.waits_before_launches;
  }
  if (before_launches < kLoopTimes) return;
  const IdleShare idle = idle_of(run, IdleCause::Synchronization);
  const u64 span = device_span_ns(run);
  const bool costly = static_cast<double>(idle.total_ns) >= kCostlyShare * static_cast<double>(span);
  if (span && !costly) return;  // waits that leave no device idle cost nothing
  std::string text =
      fmt::format("{} of {} waits for the device come before more launches, with no copy to the host between",
                  human_count(before_launches), human_count(waits));
  if (span) {
    text += fmt::format(": without them, {} less of device idle in {} gaps{}",
                        human_nanos(static_cast<Nanos>(idle.total_ns)), human_count(idle.count),
                        idle.call.empty() ? "" : ", most by " + idle.call);
  }
  Finding finding{"needless-synchronization",
                  span ? Severity::Warning : Severity::Hint,
                  "sync",
                  std::move(text),
                  "wait only where the host needs a result; order streams by events (cudaStreamWaitEvent) instead",
                  {{"waits", number(waits)}, {"before_launches", number(before_launches)}}};
  if (span) {
    finding.evidence.emplace_back("gpu_idle_ns", number(idle.total_ns));
    finding.evidence.emplace_back("gaps", number(idle.count));
  }
  finding.gain_ns = idle.total_ns;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule synchronization_rule = {
    .findings = {{"needless-synchronization", "waits after which the thread only launches more"}},
    .needs = {Need::Calls},
    .find = find_synchronization,
};

}  // namespace gputrace
