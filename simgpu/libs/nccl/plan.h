// What one kernel does: the operations that were asked for in a group (or one alone), one after the other; those between
// two ranks side by side. Launched once, or once for each replay of a graph that holds it.
#pragma once

#include <memory>
#include <vector>

#include "simgpu/libs/nccl/communicator.h"
#include "simgpu/libs/nccl/operation.h"

namespace simlibs {

// Launches the kernel on the stream, in the communicator's context.
ncclResult_t launch_plan(const Communicator& communicator, CUstream stream, std::vector<Operation> operations);
// What the ring takes for them, without waiting for others; ns.
uint64_t estimate(const ncclComm& communicator, const std::vector<Operation>& operations, uint64_t bytes_per_second);

}  // namespace simlibs
