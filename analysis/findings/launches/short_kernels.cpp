// Kernels that run shorter than their own launch call takes.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/lines/sites.h"
#include "analysis/names/categories.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kManyLaunches = 100;   // fewer are no pattern (the gate of nsys-ai)
constexpr double kMostOfThem = 0.1;  // share of the launches that are timed

struct Short {
  u64 launches = 0, timed = 0, excess_ns = 0, worst_ns = 0, worst_mean = 0, worst_call = 0;
  std::string worst;
};

// Launch time beyond the kernels' own: what the launches of a function cost more than they give. Collectives are none of them: their
// library prepares them in the call that launches, and nothing fuses them with others.
void add_process(const ProcessTrace& process, Short& sum) {
  std::vector<u64> counts(process.functions.size()), times(process.functions.size());
  for (const KernelLaunches& group : process.kernels) {
    if (group.shape.function == kNone || group.plain == 0) continue;
    counts[group.shape.function] += group.times.durations.count();
    times[group.shape.function] += group.times.durations.sum();
  }
  for (std::size_t f = 0; f < process.functions.size(); ++f) {
    const Function& function = process.functions[f];
    if (categorize(name_of(function), evidence_of(function)).category == Category::Collective) continue;
    sum.timed += function.waits.latency.count();
    sum.launches += function.waits.short_kernels;
    if (counts[f] == 0 || function.launch_calls.count() == 0) continue;
    const u64 mean = times[f] / counts[f], call = function.launch_calls.mean();
    if (call <= mean) continue;
    const u64 excess = (call - mean) * function.launch_calls.count();
    sum.excess_ns += excess;
    if (excess <= sum.worst_ns) continue;
    sum.worst_ns = excess, sum.worst_mean = mean, sum.worst_call = call;
    sum.worst = name_of(function).brief;
  }
}

std::optional<Finding> judge_short_kernels(const ProcessTrace& process) {
  Short sum;
  add_process(process, sum);
  if (sum.launches < kManyLaunches || sum.worst.empty()) return {};
  if (static_cast<double>(sum.launches) < kMostOfThem * static_cast<double>(sum.timed)) return {};
  Finding finding{
      "short-kernels",
      Severity::Hint,
      "launches",
      fmt::format("{} of {} launches took longer than the kernel they launched; most of it {} ({} on the device, {} to "
                  "launch)",
                  human_count(sum.launches), human_count(sum.timed), sum.worst,
                  human_nanos(static_cast<Nanos>(sum.worst_mean)), human_nanos(static_cast<Nanos>(sum.worst_call))),
      advise(Advice::FuseKernels, process),
      {{"short", number(sum.launches)},
       {"launches", number(sum.timed)},
       {"excess_ns", number(sum.excess_ns)},
       {"kernel", sum.worst},
       {"kernel_mean_ns", number(sum.worst_mean)},
       {"launch_mean_ns", number(sum.worst_call)}}};
  if (!costs(finding, process, WhatIf::Launches)) return {};
  finding.site = site_of_launches(process);
  return finding;
}

void find_short_kernels(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_short_kernels); }

}  // namespace

extern constexpr FindingRule short_kernels_rule = {
    .findings = {{"short-kernels", "kernels that run shorter than their own launch call takes"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_short_kernels,
    .of_the_loop = true,
};

}  // namespace gputrace
