// What the numbers say: rules over the loaded traces, each with the evidence that it rests on and, where there is one,
// the fix.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/table/table.h"

namespace gputrace {

// What a program ended by first, then problems, warnings, hints; of one severity what the numbers rest on first, then the largest
// gain, those with a fix before those without.
std::vector<Finding> find_findings(const LoadedRun& run);

}  // namespace gputrace
