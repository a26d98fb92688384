// Which processes were started together, as a run.
//   · Under one `gputrace run`: they carry its name.
//   · As ranks of one job, each under a `gputrace run` of its own (`srun gputrace run -- …`): alive together, and no rank twice.
//   · Without `gputrace run`: of one job; without a job: alive together.
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// For each process the place of the first one of its run.
std::vector<std::size_t> runs_of(const std::vector<ProcessTrace>& processes);

// For each process whether ranks of its run were started anew after it: launchers do so when one of them has failed (torchrun --max-restarts).
std::vector<bool> were_started_anew(const std::vector<ProcessTrace>& processes);

}  // namespace gputrace
