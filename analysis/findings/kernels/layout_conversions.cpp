// Kernels that only move tensors from one layout to another, because a convolution or a normalization computes in another one than the
// program keeps: cuDNN puts one before and one behind its own kernel.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/kernels/kernel_callers.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/names/categories.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

struct Conversions {
  u64 executions = 0, nanos = 0, worst_ns = 0;
  std::string worst;
  KernelCallers callers;
};

Conversions conversions_of(const ProcessTrace& process) {
  Conversions found;
  std::vector<KernelCallers> callers;
  for (u32 k = 0; k < process.kernels.size(); ++k) {
    const KernelLaunches& group = process.kernels[k];
    const u64 nanos = group.times.durations.sum();
    if (nanos == 0 || group.shape.function == kNone) continue;
    const KernelName& name = name_of(process.functions[group.shape.function]);
    if (!only_converts_layout(name)) continue;
    if (callers.empty()) callers = kernel_callers(process, FileNames(process));
    found.executions += group.executions();
    found.nanos += nanos;
    found.callers.add(callers[k]);
    if (nanos > found.worst_ns) found.worst_ns = nanos, found.worst = name.brief;
  }
  return found;
}

std::optional<Finding> judge_layout_conversions(const ProcessTrace& process) {
  const Conversions found = conversions_of(process);
  const u64 kernel_ns = kernel_time(process);
  const auto share = ratio(found.nanos, kernel_ns);
  if (!share || *share < kCostlyShare || found.executions < kLoopTimes) return {};
  Finding finding{
      "layout-conversions",
      Severity::Hint,
      "kernels",
      fmt::format("{} executions only move tensors from one layout to another: {} ({:.0f} % of kernel time), "
                  "most of it {}",
                  human_count(found.executions), human_nanos(static_cast<Nanos>(found.nanos)), *share * 100,
                  found.worst),
      advise(Advice::KeepLayout, process),
      {{"executions", number(found.executions)},
       {"total_ns", number(found.nanos)},
       {"share", *share},
       {"kernel", found.worst}}};
  finding.site = found.callers.site();
  if (!speeds_up(finding, process, WhatIf::Layouts)) return {};
  return finding;
}

void find_layout_conversions(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_layout_conversions); }

}  // namespace

extern constexpr FindingRule layout_conversions_rule = {
    .findings = {{"layout-conversions", "kernels that only move tensors from one layout to another"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_layout_conversions,
    .of_the_loop = true,
};

}  // namespace gputrace
