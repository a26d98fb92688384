// Variables of the environment that are there for debugging, or were left behind, and slow a program down. What they cost is not known: nothing
// tells how long the program takes without.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"

namespace gputrace {
namespace {

struct Slowing {
  std::string_view name, value;  // empty: any that is not off
  const char* does;
  Severity severity;
};
constexpr Slowing kSlowing[] = {
    {"CUDA_LAUNCH_BLOCKING", "", "each launch waits until its kernel has ended", Severity::Problem},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "", "each tensor is allocated by the driver", Severity::Problem},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "each array is allocated by the driver", Severity::Problem},
    {"JAX_DISABLE_JIT", "", "jax.jit compiles nothing", Severity::Problem},
    {"JAX_DEBUG_NANS", "", "each result is looked at for a NaN", Severity::Problem},
    {"TORCHDYNAMO_DISABLE", "", "torch.compile compiles nothing", Severity::Warning},
    {"TORCH_COMPILE_DISABLE", "", "torch.compile compiles nothing", Severity::Warning},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "each collective is checked over all ranks", Severity::Warning},
    {"NCCL_BLOCKING_WAIT", "", "the host waits for each collective", Severity::Warning},
    {"TORCH_NCCL_BLOCKING_WAIT", "", "the host waits for each collective", Severity::Warning},
    {"NVIDIA_TF32_OVERRIDE", "0", "no product in fp32 is rounded to TF32", Severity::Warning},
    {"CUDA_CACHE_DISABLE", "", "PTX is compiled anew in each run", Severity::Hint},
    {"TORCHINDUCTOR_FORCE_DISABLE_CACHES", "", "what is compiled is compiled anew in each run", Severity::Hint},
};

bool is_off(std::string_view value) {
  constexpr std::string_view kOff[] = {"", "0", "false", "False", "FALSE", "off", "no"};
  return std::find(std::begin(kOff), std::end(kOff), value) != std::end(kOff);
}

std::optional<Finding> judge_environment(const ProcessTrace& process) {
  Finding finding;
  finding.severity = Severity::Hint;
  u64 count = 0;
  for (const Slowing& known : kSlowing) {
    const auto set = process.environment.find(known.name);
    if (set == process.environment.end()) continue;
    if (known.value.empty() ? is_off(set->second) : set->second != known.value) continue;
    finding.text += fmt::format("{}{}={} ({})", count++ ? ", " : "", known.name, set->second, known.does);
    finding.evidence.emplace_back(std::string(known.name), set->second);
    finding.severity = std::max(finding.severity, known.severity);
  }
  if (count == 0) return {};
  finding.id = "environment-variables";
  finding.section = "run";
  finding.text = "slowed down by the environment: " + finding.text;
  finding.fix = "unset what is there for debugging alone";
  return finding;
}

void find_environment_variables(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_environment); }

}  // namespace

extern constexpr FindingRule environment_variables_rule = {
    .findings = {{"environment-variables",
                  "variables of the environment that slow a program down (`CUDA_LAUNCH_BLOCKING`)"}},
    .needs = {},
    .find = find_environment_variables,
};

}  // namespace gputrace
