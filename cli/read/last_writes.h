// A program has just ended, and its sidecar still writes the trace.
#pragma once

#include <string>
#include <vector>

namespace gputrace {

// Waits, 2 s at most, until no sidecar of a program that has ended still writes one of these files. Never for a
// program that runs: its trace is read as far as it is.
void wait_for_last_writes(const std::vector<std::string>& files);

}  // namespace gputrace
