// OUTPUT/untraced: one line for each process that made a CUDA call and could not be traced.
//   2026-11-20T18:10:45Z pid 4242 python, rank 3: the ring of 16777216 bytes cannot be had: there is not enough memory
#pragma once

#include <string>

#include "writer/host.h"

namespace gputrace {

struct Untraced {
  i32 pid = 0;
  std::string executable;  // path or name
  std::string what, fix;
};

// Appends the line; the directory is made where there is none. False: that is not possible.
bool write_untraced(const Untraced& untraced, const Environment& environment);

}  // namespace gputrace
