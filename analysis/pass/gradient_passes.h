// Backward passes of PyTorch's DistributedDataParallel: which of them added their gradients up over the ranks although more gradients were
// then added to them, before the optimizer took them (accumulation without no_sync()). Of one process; one thread; in the order of time.
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

class GradientPasses {
 public:
  explicit GradientPasses(GradientPassFacts& facts) : facts_(facts) {}

  // The replicated model was asked: a pass may follow.
  void forward() { asked_ = true; }
  // Gradients are added up: the first such call of a pass counts it.
  void reduced() {
    if (!asked_) return;
    asked_ = false;
    ++facts_.reduced;
    facts_.needless += reduced_;  // the one before it was for nothing
    reduced_ = true;
  }
  // The optimizer took the gradients, or they were set to zero.
  void taken() { reduced_ = false; }

 private:
  GradientPassFacts& facts_;
  bool asked_ = false, reduced_ = false;
};

}  // namespace gputrace
