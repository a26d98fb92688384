// PyTorch's anomaly detection, left on: autograd looks whether there is a NaN in what each function of the backward pass gives, and waits for
// the answer; and with each operation of the forward pass it keeps Python's stack as text.
//   · Known by the operation aten::_is_any_true, asked for by autograd itself: a hook of the program's
//     would ask for aten::any.
//   · Gain: the host's time in these checks, and, as looks at threads found it, in texts of stacks; but no more than all of the host's work
//     costs. The tuning guide of PyTorch names it: "Disable debugging APIs".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/callers_first.h"
#include "analysis/lines/sites.h"
#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr const char *kAutograd = "autograd::engine::evaluate_function", *kAnyTrue = "aten::_is_any_true";

struct Checks {
  u64 count = 0, host_ns = 0;
  std::vector<bool> within;  // by frame: it is of a check
};

// isnan(result)._is_any_true().item(): each asked for by the engine, not by a function of the backward pass.
Checks checks_of(const SourceLines& lines) {
  Checks checks;
  const auto& frames = lines.frames;
  checks.within.resize(frames.size());
  const auto is_asked_by_autograd = [&](u32 frame) {
    const u32 parent = frames[frame].parent;
    return parent != 0 && parent < frames.size() && frames[parent].function.starts_with(kAutograd);
  };
  std::vector<bool> checked(frames.size());  // functions of the backward pass
  for (u32 i = 1; i < frames.size(); ++i)
    if (frames[i].function == kAnyTrue && is_asked_by_autograd(i)) checked[frames[i].parent] = true;
  for_callers_first(frames, [&](u32 frame, u32 caller) {
    const std::string& name = frames[frame].function;
    const bool is_check = caller < checked.size() && checked[caller] &&
                          (name == "aten::isnan" || name == kAnyTrue || name == "aten::item");
    checks.within[frame] = is_check || checks.within[caller];
    if (!is_check || frame >= lines.operations.size()) return;
    checks.host_ns += lines.operations[frame].total_ns;
    if (name == kAnyTrue) checks.count += lines.operations[frame].count;
  });
  return checks;
}

// Of the steps, or of the run: the share of looks at threads that call CUDA which found them make text of a stack.
double share_of_texts(const ProcessTrace& process) {
  const SampleFacts& samples = process.samples;
  const std::vector<bool> within = frames_within(samples.frames, [](const SourceFrame& frame) {
    return frame.function == "format_stack" && frame.file.ends_with("/torch/fx/traceback.py");
  });
  const auto span = loop_of(process.steps);
  u64 all = 0, found = 0;
  for (const SampledThread& thread : samples.threads) {
    if (!thread.calls_cuda()) continue;
    for (const SamplePoint& point : thread.points) {
      if (span && (point.at < span->called_from || point.at >= span->called_to)) continue;
      ++all, found += point.frame < within.size() && within[point.frame];
    }
  }
  return all ? static_cast<double>(found) / static_cast<double>(all) : 0;
}

struct Cost {
  Checks checks;
  u64 texts_ns = 0, gain = 0;  // 0: nothing is known to be gained
};

Cost cost_of(const ProcessTrace& process) {
  Cost cost;
  cost.checks = checks_of(process.lines);
  const auto work = gain_of(process, WhatIf::HostWork);
  if (cost.checks.count < kLoopTimes || !work || is_busy(process)) return cost;
  cost.texts_ns = static_cast<u64>(std::llround(share_of_texts(process) * static_cast<double>(span_of(process))));
  cost.gain = std::min(*work, cost.checks.host_ns + cost.texts_ns);
  return cost;
}

std::optional<Finding> judge_anomaly_detection(const ProcessTrace& process) {
  const auto [checks, texts, gain] = cost_of(process);
  const auto severity = severity_of(process, gain);
  if (!severity) return {};
  Finding finding{
      "anomaly-detection",
      *severity,
      "ops",
      fmt::format(
          "PyTorch's anomaly detection is on: {} times autograd looks for a NaN in what a function of the "
          "backward pass gave, and waits for the answer ({} of the host's time){}",
          human_count(checks.count), human_nanos(static_cast<Nanos>(checks.host_ns)),
          texts ? fmt::format("; it makes text of Python's stack for {} more", human_nanos(static_cast<Nanos>(texts)))
                : ""),
      "leave it out where nothing is debugged (torch.autograd.set_detect_anomaly(True), "
      "torch.autograd.detect_anomaly(), Trainer(detect_anomaly=True))",
      {{"checks", number(checks.count)},
       {"checks_ns", number(checks.host_ns)},
       {"stack_texts_ns", number(texts)},
       {"gain_ns", number(gain)}}};
  finding.gain_ns = gain;
  OriginAmounts by_origin;
  const auto& origins = process.lines.origins;
  for (u32 origin = 0; origin < std::min(origins.size(), process.lines.times.size()); ++origin) {
    const u32 operation = origins[origin].operation;
    if (operation < checks.within.size() && checks.within[operation])
      by_origin.add(origin, process.lines.times[origin].device_ns);
  }
  finding.site = site_of_most(process, by_origin);
  return finding;
}

void find_anomaly_detection(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_anomaly_detection); }

}  // namespace

u64 gain_of_anomaly_detection(const ProcessTrace& process) { return cost_of(process).gain; }

extern constexpr FindingRule anomaly_detection_rule = {
    .findings = {{"anomaly-detection", "PyTorch's anomaly detection, left on in a loop"}},
    .needs = {Need::Calls, Need::Device, Need::Operations},
    .find = find_anomaly_detection,
    .of_the_loop = true,
};

}  // namespace gputrace
