// A thread that asks again and again whether the device is done, and hears of it late.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_polling(const ProcessTrace& process) {
  const IdleShare idle = idle_of(process, IdleCause::Polling);
  const std::optional<u64> gain = gain_of(process, WhatIf::Polling);
  if (idle.count == 0 || !gain || *gain == 0) return {};
  Finding finding{"polling",
                  Severity::Hint,
                  "idle-causes",
                  fmt::format("the device is idle {} in {} gaps while a thread asks again and again whether it is done",
                              human_nanos(static_cast<Nanos>(idle.total_ns)), human_count(idle.count)),
                  "wait (cudaEventSynchronize, cudaStreamSynchronize), or ask more often",
                  {{"gpu_idle_ns", number(idle.total_ns)}, {"gaps", number(idle.count)}}};
  if (!idle.call.empty()) finding.evidence.emplace_back("call", idle.call);
  if (!costs(finding, process, WhatIf::Polling)) return {};
  finding.site = site_of_idle(process, IdleCause::Polling).site;
  return finding;
}

void find_polling(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_polling); }

}  // namespace

extern constexpr FindingRule polling_rule = {
    .findings = {{"polling", "a thread that asks again and again whether the device is done, and hears of it late"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_polling,
    .of_the_loop = true,
};

}  // namespace gputrace
