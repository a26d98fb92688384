// Time that a loop spends in a framework's compiler: told by samples of the host's threads, whose frames are in it.
#pragma once

#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

struct Compiling {
  u64 ns = 0;             // at least one thread of the process was in a compiler
  u64 samples = 0;        // that found it there
  u64 steps = 0, of = 0;  // steps in which that was found, and all that there are
  std::string site;       // the program's line from which most of it came; empty: none is known
  std::string compiler;   // "torch.compile", "Triton", "JAX", "Numba": the outermost one of most samples
};

// Of the part of the run that `process` is of. Nothing found, or no samples: all zero.
Compiling compiling_of(const ProcessTrace& process);

}  // namespace gputrace
