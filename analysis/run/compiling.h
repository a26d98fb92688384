// Time that a program spends in a framework's compiler: told by samples of the host's threads, whose frames are in it, and by
// XLA's own ranges.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// A thread of the process was in a compiler.
struct CompilingSpan {
  Nanos begin = 0, end = 0;
  bool is_sampled = false;  // ends where the next sample was taken: it may have been over before
};

// In the order of their begins; they may overlap (other threads, and both ways of telling).
std::vector<CompilingSpan> compiling_spans(const ProcessTrace& process);

struct Compiling {
  u64 ns = 0;             // at least one thread of the process was in a compiler
  u64 samples = 0;        // that found it there
  u64 xla_ns = 0;         // of `ns`: XLA says so itself
  u64 again_ns = 0;       // XLA compiled a module that it had compiled before, by name
  std::string module;     // most of that is this one's
  u64 module_times = 0;   // how often it was compiled
  u64 steps = 0, of = 0;  // steps in which that was found, and all that there are
  std::string site;       // the program's line from which most of it came; empty: none is known
  std::string compiler;   // "torch.compile", "Triton", "JAX", "Numba": the outermost one of most samples; else "XLA"
};

// Of the part of the run that `process` is of. Nothing found: all zero.
Compiling compiling_of(const ProcessTrace& process);

}  // namespace gputrace
