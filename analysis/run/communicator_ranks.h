// Which rank a process is where no launcher said it (torch.multiprocessing.spawn, vLLM's workers): that in the largest communicator of NCCL
// that it made.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Sets the rank of processes of a run of which none has one. Only where all that made communicators made the same largest one, each of them
// one rank of it: else (several jobs, groups of equal size, several devices in a process) nobody has a rank.
void take_ranks_of_communicators(std::vector<ProcessTrace>& processes);

}  // namespace gputrace
