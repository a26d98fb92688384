// The device waits for launches, and the host was busy launching.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// XProf's gates for "kernel launch bound": moderately, highly.
constexpr double kModerately = 0.03, kHighly = 0.15;

std::optional<Finding> judge_launch_bound(const ProcessTrace& process) {
  const double span = static_cast<double>(span_of(process));
  const IdleShare idle = idle_of(process, IdleCause::Launch);
  if (span <= 0 || is_busy(process) || static_cast<double>(idle.total_ns) < kModerately * span) return {};
  const double share = static_cast<double>(idle.total_ns) / span;
  Finding finding{"launch-bound",
                  share >= kHighly ? Severity::Warning : Severity::Hint,
                  "idle-causes",
                  fmt::format("the device waits for launches {} of {} ({:.0f} %): the host launches no faster than "
                              "it computes ({} gaps)",
                              human_nanos(static_cast<Nanos>(idle.total_ns)), human_nanos(static_cast<Nanos>(span)),
                              share * 100, human_count(idle.count)),
                  "launch less and more at once: CUDA graphs, fused kernels (torch.compile), larger batches",
                  {{"idle_ns", number(idle.total_ns)},
                   {"gaps", number(idle.count)},
                   {"span_ns", number(static_cast<u64>(span))},
                   {"share", share}}};
  if (!idle.call.empty()) finding.evidence.emplace_back("call", idle.call);
  set_gain(finding, process, WhatIf::Launches);
  finding.site = site_of_idle(process, IdleCause::Launch);
  return finding;
}

void find_launch_bound(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_launch_bound); }

}  // namespace

extern constexpr FindingRule launch_bound_rule = {
    .findings = {{"launch-bound", "devices that wait for launches, and a host that is busy launching"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_launch_bound,
};

}  // namespace gputrace
