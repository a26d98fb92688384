// Gradients that ranks add up although more are added to them before the optimizer takes them: accumulation without no_sync() of
// PyTorch's DistributedDataParallel. Gain: that part of what collectives take of the steps; of several ranks what they take the one that
// waits least, since the others' is waiting for it. (The tuning guide of PyTorch names it: "Skip unnecessary all-reduce".)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/callers_first.h"
#include "analysis/lines/sites.h"
#include "analysis/steps/rank_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// What collectives take of a step at least, of all ranks.
u64 transfer_of(const LoadedRun& run, const StepStatistics& own) {
  u64 least = own.mean_parts[static_cast<unsigned>(StepCategory::Collective)];
  for (const RankSteps& rank : rank_steps(run)) least = std::min(least, rank.part(StepCategory::Collective));
  return least;
}

// What the device spends in reductions, by who asked for them: the line of the forward pass.
OriginAmounts reductions_by_origin(const SourceLines& lines) {
  const std::vector<bool> within =
      frames_within(lines.frames, [](const SourceFrame& frame) { return frame.function == "c10d::allreduce_"; });
  OriginAmounts amounts;
  for (u32 origin = 0; origin < std::min(lines.origins.size(), lines.times.size()); ++origin) {
    const u32 operation = lines.origins[origin].operation;
    if (operation < within.size() && within[operation]) amounts.add(origin, lines.times[origin].device_ns);
  }
  return amounts;
}

std::optional<Finding> judge_reductions(const LoadedRun& run, const ProcessTrace& process) {
  const GradientPassFacts& passes = process.gradient_passes;
  const StepStatistics steps = statistics_of(process.steps);
  if (passes.needless < kLoopTimes || steps.divided == 0) return {};
  const double share = static_cast<double>(passes.needless) / static_cast<double>(passes.reduced);
  const auto gain = static_cast<u64>(std::llround(share * static_cast<double>(transfer_of(run, steps))));
  const double of_step = static_cast<double>(gain) / static_cast<double>(steps.mean_ns);
  if (of_step < kHintShare) return {};
  Finding finding;
  finding.id = "needless-reductions";
  finding.severity = of_step >= kProblemShare   ? Severity::Problem
                     : of_step >= kWarningShare ? Severity::Warning
                                                : Severity::Hint;
  finding.section = "ranks";
  finding.text = fmt::format(
      "{} of {} backward passes add their gradients up over the ranks for nothing: the next pass adds to them "
      "before the optimizer takes them",
      human_count(passes.needless), human_count(passes.reduced));
  finding.fix = "with model.no_sync() around forward and backward passes of all batches of a step but the last one";
  finding.site = site_of_most(process, reductions_by_origin(process.lines));
  finding.gain_ns_per_step = gain;
  finding.gain_ns = gain * steps.counted;
  finding.evidence = {
      {"needless", number(passes.needless)}, {"reduced", number(passes.reduced)}, {"gain_ns", number(finding.gain_ns)}};
  return finding;
}

void find_needless_reductions(const LoadedRun& run, Findings& found) {
  add_worst(run, found, [&run](const ProcessTrace& process) { return judge_reductions(run, process); });
}

}  // namespace

extern constexpr FindingRule needless_reductions_rule = {
    .findings = {{"needless-reductions",
                  "gradients that ranks add up although more are added to them before the optimizer takes them"}},
    .needs = {Need::Device, Need::Operations},
    .find = find_needless_reductions,
};

}  // namespace gputrace
