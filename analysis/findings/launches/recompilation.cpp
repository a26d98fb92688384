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
    return "keep shapes, types and static arguments the same (padding to a few lengths), and make what is jitted once, "
           "outside of the loop (a new lambda or partial is compiled anew); JAX_LOG_COMPILES=1 says what is compiled";
  if (compiler == "XLA")
    return "keep shapes and types the same (drop_remainder=True, padding to a few lengths), or tell them: an "
           "input_signature, tf.function(reduce_retracing=True); make what is traced once, outside of the "
           "loop, and give it tensors, not Python's numbers";
  return "compile before the loop: a kernel is compiled anew for each type, constant and configuration that it has not "
         "seen";
}

std::string told_by(const Compiling& compiling) {
  if (compiling.xla_ns == compiling.ns) return "as XLA says";
  return compiling.xla_ns ? "as XLA says and samples of the host's threads" : "by samples of the host's threads";
}

// Where no steps are known, XLA's modules tell: one that is compiled again, of the same name, is that function for other shapes.
bool compiles_again(const Compiling& compiling) {
  return compiling.of ? compiling.steps >= kLeastSteps : compiling.module_times >= kLeastSteps;
}

u64 gain_of(const ProcessTrace& process, const Compiling& compiling) {
  if (!compiles_again(compiling)) return 0;
  u64 idle = 0;
  for (const DeviceTimes& device : process.device.devices) idle = std::max(idle, device.idle_ns);
  return std::min(compiling.of ? compiling.ns : compiling.again_ns,
                  idle);  // meanwhile the device may have work of before
}

std::string text_of(const ProcessTrace& process, const Compiling& compiling) {
  const auto share = [&](u64 length) {
    const double of = static_cast<double>(std::max<u64>(1, span_of(process)));
    return std::min(1.0, static_cast<double>(length) / of) * 100;
  };
  const auto words = [](u64 length) { return human_nanos(static_cast<Nanos>(length)); };
  const std::string again =
      compiling.module.empty() ? "" : fmt::format("{} is compiled {} times", compiling.module, compiling.module_times);
  if (compiling.of == 0)
    return fmt::format("{}: {} spends {} ({:.0f} % of the run) on what it had compiled before, as XLA says", again,
                       compiling.compiler, words(compiling.again_ns), share(compiling.again_ns));
  return fmt::format("{} of {} steps compile: {} spends {} ({:.0f} % of the loop), {}{}{}", compiling.steps,
                     compiling.of, compiling.compiler, words(compiling.ns), share(compiling.ns), told_by(compiling),
                     again.empty() ? "" : "; ", again);
}

std::optional<Finding> judge_recompilation(const ProcessTrace& process) {
  const Compiling compiling = compiling_of(process);
  const u64 gain = gain_of(process, compiling);
  if (gain == 0) return {};
  const auto severity = severity_of(process, gain);
  if (!severity) return {};
  Finding finding{"recompilation",
                  *severity,
                  compiling.of ? "steps" : "idle-causes",
                  text_of(process, compiling),
                  fix_of(compiling.compiler),
                  {{"compiling_ns", number(compiling.ns)},
                   {"xla_ns", number(compiling.xla_ns)},
                   {"again_ns", number(compiling.again_ns)},
                   {"module_times", number(compiling.module_times)},
                   {"samples", number(compiling.samples)},
                   {"steps_with", number(compiling.steps)},
                   {"steps", number(compiling.of)},
                   {"compiler", compiling.compiler}}};
  if (!compiling.module.empty()) finding.evidence.emplace_back("module", compiling.module);
  finding.gain_ns = gain;
  finding.site = compiling.site;
  return finding;
}

void find_recompilation(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_recompilation); }

}  // namespace

u64 gain_of_compiling(const ProcessTrace& process) { return gain_of(process, compiling_of(process)); }

extern constexpr FindingRule recompilation_rule = {
    .findings = {{"recompilation",
                  "a loop in which three steps or more compile: torch.compile, Triton, JAX, Numba, TensorFlow; without "
                  "steps, a module that XLA compiles three times or more"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_recompilation,
    .of_the_loop = true,
};

}  // namespace gputrace
