// Where torch.compile breaks a function into several graphs: it goes on in functions that it makes, and names for the line.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// "train.py:12": the lines behind which work was launched 16 times and more; most of it first.
std::vector<std::string> graph_breaks(const ProcessTrace& process);

}  // namespace gputrace
