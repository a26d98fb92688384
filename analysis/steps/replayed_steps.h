// Steps of a program that captures all of one in a CUDA graph, the optimizer's in it, and replays that: PyTorch marks the optimizer's step while it is
// captured, when it launches nothing, and no more after it.
#pragma once

#include <optional>
#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

struct ReplayedSteps {
  std::vector<LoopEvent>
      events;  // the given ones, without the mark of what was captured, and with such marks around each launch of the graph
  u64 replays = 0;
  Nanos first = 0;  // begin of the first replay
};

// `events` in the order of their begins. Nothing: no step was captured, or no graph came as often behind it as there are marks.
std::optional<ReplayedSteps> replayed_steps(const std::vector<LoopEvent>& events);

}  // namespace gputrace
