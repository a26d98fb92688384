// Who makes a process's calls, as the frames of their stacks tell: the framework that calls CUDA, and the trainer or engine whose loop it is.
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// In whose words advice can be given. A trainer is told from its framework, since what its user can change is the trainer's.
enum class Maker : u8 {
  General,  // first the frameworks, to CuPy
  PyTorch,
  Jax,
  TensorFlow,
  Numba,
  CuPy,
  Transformers,
  Lightning,
  Keras,  // on whatever it stands
  KerasOnPyTorch,
  KerasOnJax,
  KerasOnTensorFlow,
  Vllm,
  Sglang,
  CompiledPyTorch,  // torch.compile's code makes a tenth of the launches or more
};

bool is_keras(Maker maker);

struct CallsMade {
  Maker by =
      Maker::General;  // of most calls whose stack is known; General: of most the program's own code, or none is known
  // Shares of the launches that lie within a step of one of PyTorch's optimizers, within its zero_grad, and within its DataParallel.
  double in_optimizer = 0;
  double in_zero_grad = 0;
  double in_replicas = 0;
};
CallsMade calls_made(const ProcessTrace& process);

}  // namespace gputrace
