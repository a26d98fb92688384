// How much of its steps a run waits for input, in the words and by the gates of TensorFlow's profiler.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// Of the mean step.
inline constexpr double kModeratelyInputBound = 0.05, kHighlyInputBound = 0.20;

struct InputWait {
  u64 steps = 0;       // over which the rest is taken: those that count and are divided
  u64 steps_ns = 0;    // their length
  u64 input_ns = 0;    // of it: waiting for the next batch, or a copy to the device, while nothing of a higher rank ran
  u64 batches_ns = 0;  // of input_ns: the program waited for its loader
  double share() const { return steps_ns ? static_cast<double>(input_ns) / static_cast<double>(steps_ns) : 0; }
};
// Nothing: no step's time is divided.
std::optional<InputWait> input_wait_of(const StepFacts& steps);

// "HIGHLY input-bound", "moderately input-bound", "not input-bound".
const char* input_verdict(double share);
// The verdict on the mean step: where nobody told of a loader, a share below the gates is that of copies alone, and no verdict.
std::string input_words(const StepFacts& steps, double share);

}  // namespace gputrace
