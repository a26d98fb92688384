// PyTorch's training loop as a planted program: its batches, its kernels, and the marks that PyTorch sets.
#pragma once

#include <vector>

#include "tests/unit/planted.h"

namespace gputrace::test {

inline constexpr const char* kLoader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
inline constexpr const char* kBackward = "autograd::engine::evaluate_function: AddmmBackward0";
inline constexpr const char* kOptimizer = "Optimizer.step#SGD.step";

// PyTorch's loop: a batch that takes so long to load, micro-steps of one kernel each, the optimizer's.
class Loop : public Planted {
 public:
  void batch(Nanos loads) {
    const Nanos begin = now();
    sleep(loads);
    operation(kLoader, begin);
  }
  void forward() { run(4 * kUs, 100 * kUs); }
  void update(Nanos before = 0) {
    const Nanos begin = now();
    sleep(before);
    run(4 * kUs, 50 * kUs, 1);
    operation(kOptimizer, begin);
  }
  // A node of the backward pass.
  void backward() {
    const Nanos begin = now();
    run(4 * kUs, 100 * kUs, 2);
    operation(kBackward, begin);
  }
  void begins() { begins_.push_back(now()); }
  const std::vector<Nanos>& wanted() const { return begins_; }

 private:
  std::vector<Nanos> begins_;
};

}  // namespace gputrace::test
