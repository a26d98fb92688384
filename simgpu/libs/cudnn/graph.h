// What an operation graph of cuDNN's graph interface does, as work of this stand-in.
#pragma once

#include "simgpu/libs/cudnn/backend.h"
#include "simgpu/libs/cudnn/convolution.h"

namespace simlibs {

// What a plan launches: products, or one fused kernel over elements.
struct Work {
  std::vector<ImplicitProduct> products;
  const char* kernel = nullptr;
  long long elements = 0;
};

// Null: a graph that this stand-in has no kernels for.
std::shared_ptr<const Work> work_of(const State& graph);

// How many engines a graph has: as many as there are kernels for its largest product, one without any.
int engines_of(const Work& work);
// Whether that engine multiplies on tensor cores.
bool uses_tensor_cores(const Work& work, int engine);
cudnnStatus_t execute(cudnnHandle_t handle, const Work& work, int engine);

}  // namespace simlibs
