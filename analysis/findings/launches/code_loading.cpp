// Machine code that is loaded or compiled while the device waits.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_code_loading(const ProcessTrace& process) {
  const IdleShare idle = idle_of(process, IdleCause::ModuleLoad);
  const std::optional<u64> gain = gain_of(process, WhatIf::Modules);
  if (idle.count == 0 || !gain || *gain == 0) return {};
  Finding finding{"code-loading",
                  Severity::Hint,
                  "idle-causes",
                  fmt::format("the device is idle {} in {} gaps while machine code is loaded, compiled or looked up",
                              human_nanos(static_cast<Nanos>(idle.total_ns)), human_count(idle.count)),
                  "load before the loop: CUDA_MODULE_LOADING=EAGER, a warm-up, compiled kernels kept",
                  {{"gpu_idle_ns", number(idle.total_ns)}, {"gaps", number(idle.count)}}};
  if (!idle.call.empty()) finding.evidence.emplace_back("call", idle.call);
  if (!costs(finding, process, WhatIf::Modules)) return {};
  finding.site = site_of_idle(process, IdleCause::ModuleLoad).site;
  return finding;
}

void find_code_loading(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_code_loading); }

}  // namespace

extern constexpr FindingRule code_loading_rule = {
    .findings = {{"code-loading", "machine code that is loaded or compiled while the device waits"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_code_loading,
    .of_the_loop = true,
};

}  // namespace gputrace
