// The device waits for launches, and the host was busy launching.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr double kHighly = 0.15;  // XProf's second gate
constexpr u64 kLeastGaps = 3;     // one long call is no habit
constexpr u64 kTwentieth = 20;

// Graphs hold what comes again as it was: where the shapes of inputs change with each step, little does, and the gain is small.
void say_what_repeats(const GainFacts& gains, Finding& finding) {
  constexpr double kFew = 0.5;
  if (!gains.replayed() || gains.launches == 0) return;
  const double share = static_cast<double>(gains.launches_repeated) / static_cast<double>(gains.launches);
  if (share >= kFew) return;
  finding.text += fmt::format(
      "; {:.0f} % of the launches come again, five and more in the same order and shapes, and graphs hold no others",
      share * 100);
  finding.fix += "; inputs of a few lengths (padded, or gathered by length)";
  finding.evidence.emplace_back("repeated_share", share);
}

// Of the device that waits the largest share of its own span: shares of several devices are not summed.
std::optional<Finding> judge_launch_bound(const ProcessTrace& process) {
  const auto& devices = process.device.devices;
  const auto worst = std::max_element(devices.begin(), devices.end(), [](const DeviceTimes& a, const DeviceTimes& b) {
    return launch_share(a) < launch_share(b);
  });
  if (worst == devices.end() || misses_records(process) || launch_share(*worst) < kLaunchBound) return {};
  const IdleSum &calls = worst->causes[static_cast<unsigned>(IdleCause::Launch)], &between = worst->between_launches;
  const double span = static_cast<double>(worst->span_ns());
  const u64 idle = calls.total_ns + between.total_ns, gaps = std::max(calls.count, between.count);
  const double share = static_cast<double>(idle) / span;
  Finding finding{
      "launch-bound",
      share >= kProblemShare ? Severity::Problem
      : share >= kHighly     ? Severity::Warning
                             : Severity::Hint,
      "idle-causes",
      fmt::format("device {} waits for launches {} of {} ({:.0f} %): the host launches no faster than "
                  "it computes ({} gaps; {} in launch calls, {} from one to the next)",
                  worst->device, human_nanos(static_cast<Nanos>(idle)), human_nanos(static_cast<Nanos>(span)),
                  share * 100, human_count(gaps), human_nanos(static_cast<Nanos>(calls.total_ns)),
                  human_nanos(static_cast<Nanos>(between.total_ns))),
      "launch less and more at once: " + fewer_launches(process),
      {{"device", static_cast<i64>(worst->device)},
       {"idle_ns", number(idle)},
       {"between_launches_ns", number(between.total_ns)},
       {"gaps", number(gaps)},
       {"span_ns", number(static_cast<u64>(span))},
       {"share", share}}};
  const std::string call = idle_of(process, IdleCause::Launch).call;
  if (!call.empty()) finding.evidence.emplace_back("call", call);
  set_gain(finding, process, WhatIf::Launches);
  const SiteShare worst_line = site_of_launch_gaps(process);
  finding.site = worst_line.site;
  if (!worst_line.site.empty()) {
    finding.text += fmt::format("; {:.0f} % of that before launches of {}", worst_line.share * 100, worst_line.site);
    finding.evidence.emplace_back("site_share", worst_line.share);
    say_within(worst_line.within, finding);
  }
  // Of several devices the gain may be the others'.
  if (devices.size() == 1 && finding.gain_ns > idle + idle / kTwentieth)
    finding.text += "; graphs would take the longer pauses between launches of one sequence as well";
  say_what_repeats(process.gains, finding);
  return finding;
}

void find_launch_bound(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_launch_bound); }

}  // namespace

double launch_share(const DeviceTimes& device) {
  const IdleSum &calls = device.causes[static_cast<unsigned>(IdleCause::Launch)], &between = device.between_launches;
  if (device.span_ns() == 0 || is_busy(device) || std::max(calls.count, between.count) < kLeastGaps) return 0;
  return static_cast<double>(calls.total_ns + between.total_ns) / static_cast<double>(device.span_ns());
}

extern constexpr FindingRule launch_bound_rule = {
    .findings = {{"launch-bound", "devices that wait for launches, and a host that is busy launching"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_launch_bound,
    .of_the_loop = true,
};

}  // namespace gputrace
