// What the marks of PyTorch's optimizers say of a loop. `events` in the order of their begins; places are those behind an event.
#pragma once

#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

struct OptimizerMarks {
  std::vector<u32> steps;       // ends of Optimizer.step, of the outermost where one calls another (Lookahead)
  std::vector<u32> zero_grads;  // Optimizer.zero_grad, but for those of closures
  bool closures = false;        // the optimizer's step calls the program for gradients, as often as it likes (LBFGS)
};
OptimizerMarks optimizer_marks(const std::vector<LoopEvent>& events);

// Whether steps were left out, as GradScaler does with those that would overflow, at the begin of a run above all: gradients are set to zero, a
// backward pass makes them, and they are set to zero again; and there are more such passes than steps. Not where it takes as many passes to each
// step (SAM).
bool skips_steps(const std::vector<LoopEvent>& events, const OptimizerMarks& marks);

// The last step of each turn of the loop: every other one where what lies before one and before the next differ and
// both come again and again (the two optimizers of a GAN); else all.
std::vector<u32> ends_of_turns(const std::vector<LoopEvent>& events, const OptimizerMarks& marks);

}  // namespace gputrace
