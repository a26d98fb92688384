// What a person calls a traced process.
#pragma once

#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// The file of its executable; of an interpreter, its script or module: "train.py", "python -m pytest", "engine.py (multiprocessing)".
std::string program_name(const ProcessTrace& process);

}  // namespace gputrace
