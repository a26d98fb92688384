// Whose marks are steps, where several threads set them beside each other: models that are trained side by side in one process, a server's
// threads that generate. Their turns overlap, so that of all of them together none can be told. (A pool to which one loop is handed over is none of these.)
#pragma once

#include <optional>
#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

struct MarkingThread {
  u32 thread = 0;  // the one that sets most marks
  // Its own, in order; not what autograd's threads gave to the device for it: they work for all.
  std::vector<LoopEvent> events;
  u64 other_threads = 0, other_turns = 0;  // StepFacts
};

// Steps of PyTorch's optimizers, else tokens of generate(). Nothing: one thread sets them, or nobody. `events` in the order of their begins.
std::optional<MarkingThread> marking_thread(const std::vector<LoopEvent>& events);

}  // namespace gputrace
