// The device waits for launches, and the host was busy launching.
#include <fmt/format.h>

#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// XProf's gates for "kernel launch bound": moderately, highly.
constexpr double kModerately = 0.03, kHighly = 0.15;

void find_launch_bound(const LoadedRun& run, Findings& found) {
  const u64 span = device_span_ns(run);
  const IdleShare idle = idle_of(run, IdleCause::Launch);
  if (span == 0 || static_cast<double>(idle.total_ns) < kModerately * static_cast<double>(span)) return;
  const double share = static_cast<double>(idle.total_ns) / static_cast<double>(span);
  Finding finding{
      "launch-bound",
      share >= kHighly ? Severity::Warning : Severity::Hint,
      "idle-causes",
      fmt::format("the devices wait for launches {} of {} ({:.0f} %): the host launches no faster than "
                  "they compute ({} gaps)",
                  human_nanos(static_cast<Nanos>(idle.total_ns)), human_nanos(static_cast<Nanos>(span)), share * 100,
                  human_count(idle.count)),
      "launch less and more at once: CUDA graphs, fused kernels (torch.compile), larger batches",
      {{"idle_ns", number(idle.total_ns)}, {"gaps", number(idle.count)}, {"span_ns", number(span)}, {"share", share}}};
  if (!idle.call.empty()) finding.evidence.emplace_back("call", idle.call);
  finding.gain_ns = idle.total_ns;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule launch_bound_rule = {
    .findings = {{"launch-bound", "devices that wait for launches, and a host that is busy launching"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_launch_bound,
};

}  // namespace gputrace
