// ncclGroupStart … ncclGroupEnd: what is asked for in between is begun at the end, and waited for together. Per thread.
#pragma once

#include <functional>

#include "simgpu/libs/nccl/communicator.h"
#include "simgpu/libs/nccl/operation.h"

namespace simlibs {

void group_begin();
// At the outermost end: communicators get ready, then one kernel for each communicator and stream, in the order in which
// they were first asked for. The first error, also of the calls in between.
ncclResult_t group_end();
// Instead of that, what the kernels would take; ns.
ncclResult_t group_estimate(uint64_t* nanos);

// Now, or in a group at its end.
ncclResult_t get_ready(const Communicator& communicator);
ncclResult_t enqueue(ncclComm_t handle, cudaStream_t stream, const Operation& operation);
// A call's own result, kept for the end of the group that it is in.
ncclResult_t remember(ncclResult_t result);

}  // namespace simlibs
