// Functions of the host that a stream waits for.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_host_functions(const ProcessTrace& process) {
  const IdleShare idle = idle_of(process, IdleCause::HostFunction);
  const std::optional<u64> gain = gain_of(process, WhatIf::HostFunctions);
  if (idle.count == 0 || !gain || *gain == 0) return {};
  Finding finding{"host-functions",
                  Severity::Hint,
                  "idle-causes",
                  fmt::format("the device is idle {} in {} gaps behind functions of the host in its streams (inferred: "
                              "their ends are not measured)",
                              human_nanos(static_cast<Nanos>(idle.total_ns)), human_count(idle.count)),
                  "keep functions of the host out of streams that have work behind them, or make them short",
                  {{"gpu_idle_ns", number(idle.total_ns)}, {"gaps", number(idle.count)}}};
  if (!idle.call.empty()) finding.evidence.emplace_back("call", idle.call);
  if (!costs(finding, process, WhatIf::HostFunctions)) return {};
  finding.site = site_of_idle(process, IdleCause::HostFunction).site;
  return finding;
}

void find_host_functions(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_host_functions); }

}  // namespace

extern constexpr FindingRule host_functions_rule = {
    .findings = {{"host-functions", "functions of the host in a stream, for which the device waits"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_host_functions,
    .of_the_loop = true,
};

}  // namespace gputrace
