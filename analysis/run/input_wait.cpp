#include "analysis/run/input_wait.h"

namespace gputrace {

std::optional<InputWait> input_wait_of(const StepFacts& steps) {
  InputWait wait;
  for (const Step& step : steps.steps) {
    if (!step.counted || !step.divided) continue;
    ++wait.steps;
    wait.steps_ns += step.length();
    wait.batches_ns += step.waited_for_batches_ns;
    wait.input_ns += step.parts[static_cast<unsigned>(StepCategory::Input)];
  }
  if (wait.steps == 0) return std::nullopt;
  return wait;
}

const char* input_verdict(double share) {
  return share >= kHighlyInputBound       ? "HIGHLY input-bound"
         : share >= kModeratelyInputBound ? "moderately input-bound"
                                          : "not input-bound";
}

std::string input_words(const StepFacts& steps, double share) {
  if (!steps.loader.empty() || share >= kModeratelyInputBound) return input_verdict(share);
  return "not bound by its copies to the device (whether it waits for batches is not known: no framework told of a "
         "loader in the loop, and looks at its threads found none)";
}

}  // namespace gputrace
