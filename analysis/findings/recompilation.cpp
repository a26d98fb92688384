// A loop that compiles anew, step after step.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/run/compiling.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLeastSteps = 3;  // once or twice is what a first batch of another size costs

std::string fix_of(const std::string& compiler) {
  if (compiler == "torch.compile")
    return "keep shapes the same (drop_last=True, padding to a few lengths), or torch.compile(dynamic=True) and "
           "mark_dynamic; TORCH_LOGS=recompiles says which guard failed";
  if (compiler == "JAX")
    return "keep shapes, types and static arguments the same (padding to a few lengths); JAX_LOG_COMPILES=1 says what "
           "is compiled";
  return "compile before the loop: a kernel is compiled anew for each type, constant and configuration that it has not "
         "seen";
}

u64 gain_of(const ProcessTrace& process, const Compiling& compiling) {
  if (compiling.steps < kLeastSteps) return 0;
  u64 idle = 0;
  for (const DeviceTimes& device : process.device.devices) idle = std::max(idle, device.idle_ns);
  return std::min(compiling.ns, idle);  // while it compiles the device may have work of before
}

std::optional<Finding> judge_recompilation(const ProcessTrace& process) {
  const Compiling compiling = compiling_of(process);
  const u64 gain = gain_of(process, compiling);
  if (gain == 0) return {};
  const auto severity = severity_of(process, gain);
  if (!severity) return {};
  const double share = static_cast<double>(compiling.ns) / static_cast<double>(std::max<u64>(1, span_of(process)));
  Finding finding{
      "recompilation",
      *severity,
      "steps",
      fmt::format("{} of {} steps compile: {} spends {} ({:.0f} % of the loop), by samples of the host's threads",
                  compiling.steps, compiling.of, compiling.compiler, human_nanos(static_cast<Nanos>(compiling.ns)),
                  std::min(1.0, share) * 100),
      fix_of(compiling.compiler),
      {{"compiling_ns", number(compiling.ns)},
       {"samples", number(compiling.samples)},
       {"steps_with", number(compiling.steps)},
       {"steps", number(compiling.of)},
       {"compiler", compiling.compiler}}};
  finding.gain_ns = gain;
  finding.site = compiling.site;
  return finding;
}

void find_recompilation(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_recompilation); }

}  // namespace

u64 gain_of_compiling(const ProcessTrace& process) { return gain_of(process, compiling_of(process)); }

extern constexpr FindingRule recompilation_rule = {
    .findings = {{"recompilation", "a loop in which three steps or more compile: torch.compile, Triton, JAX, Numba"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_recompilation,
    .of_the_loop = true,
};

}  // namespace gputrace
