// Which parts of the simulated GPU a program gets: those of the CUDA major that it was built for, as far as one can know without running it.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/places.h"
#include "cli/verb.h"

namespace gputrace {

struct SimgpuChoice {
  int major = 0;                      // 12 or 13; 0: not on the simulated GPU
  std::string reason;                 // why that one: one sentence
  std::vector<std::string> preloads;  // absolute paths, in their order: driver, runtime, CUPTI, stand-ins of libraries
  bool complete = false;              // driver, runtime and CUPTI of that major are installed
};

// The major, in this order: what --simgpu= says; what the program, or a program among the words of the command (`sh -c 'python x.py'`), is
// linked against; the CUDA wheels of its Python; 13.
SimgpuChoice choose_simgpu(const TraceOptions& options, const Places& places, const Arguments& command);

// One line on what is not installed, with the fix.
std::string what_is_incomplete(const SimgpuChoice& choice);

// "libcuda.so.1 libcudart.so.13 …"
std::string names_of_preloads(const SimgpuChoice& choice);

}  // namespace gputrace
