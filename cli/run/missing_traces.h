// Why there is no trace of a program, or of some of its processes: the true reason, as far as the processes, the environment
// and the file that was started tell.
#pragma once

#include <string>
#include <vector>

#include "cli/places.h"
#include "cli/run/run_notes.h"
#include "cli/target.h"
#include "cli/verb.h"

namespace gputrace {

// Lines for stderr, where no trace was written at all.
std::string why_no_trace(const std::vector<RunNote>& notes, const Arguments& command, const Target& target,
                         const Places& places);

// Lines for stderr on processes that made CUDA calls and have no trace beside others that have; empty: there are none.
std::string why_not_all(const std::vector<RunNote>& notes);

}  // namespace gputrace
