// Where a libcupti is looked for, in the order in which the places are tried: one that the program has loaded, beside the
// loaded driver and runtime, the Python packages of CUDA 13 and 12, the toolkit, whatever the loader finds. Pure: nothing is
// opened here. Also for `gputrace doctor`, which says so before a program runs.
#pragma once

#include "base/types.h"

namespace gputrace {

struct CuptiCandidate {
  char path[512];      // a file, or a plain name for the loader to find
  const char* reason;  // constant text
  bool loaded;         // only if it is loaded already
};
struct CuptiSearch {
  const char* const* loaded = nullptr;  // paths of the loaded objects
  u32 loaded_count = 0;
  const char* driver_path = nullptr;  // nullptr: not known
  const char* runtime_path = nullptr;
  const char* cuda_home = nullptr;  // $CUDA_HOME
  u32 newest_major = 13;            // of the driver: a CUPTI newer than the driver does not work
};
// Returns how many there are, at most `capacity`.
u32 list_candidates(const CuptiSearch& search, CuptiCandidate* out, u32 capacity);

}  // namespace gputrace
