// Launchers that start a job's ranks anew when one of them has failed (torchrun --max-restarts): the processes of one rank follow each other.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// For each process whether ranks of its run were started anew after it.
std::vector<bool> were_started_anew(const std::vector<ProcessTrace>& processes);

}  // namespace gputrace
