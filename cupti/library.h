// Which libcupti: the one that the program has loaded already, else the one that belongs to its driver or runtime. Two
// copies in one process do not get along, and the first one opened under a name is the one that the program gets later.
#pragma once

#include "base/sentence.h"
#include "base/types.h"
#include "cupti/api.h"
#include "cupti/loader.h"

namespace gputrace {

// Places in the order in which they are tried. Pure: `loaded` are the paths of the loaded objects.
struct LibraryCandidate {
  char path[512];      // a file, or a plain name for the loader to find
  const char* reason;  // constant text
  bool loaded;         // only if it is loaded already
};
struct LibrarySearch {
  const char* const* loaded = nullptr;
  u32 loaded_count = 0;
  const char* driver_path = nullptr;
  const char* runtime_path = nullptr;
  const char* cuda_home = nullptr;
  u32 newest_major = 13;  // of the driver: a CUPTI newer than the driver does not work
};
u32 list_candidates(const LibrarySearch& search, LibraryCandidate* out, u32 capacity);

// Opens one and finds its functions. False: `said` tells why there is none.
bool open_cupti(const DeviceOptions& options, const DeviceHost& host, CuptiApi& api, Sentence& said);
// A profiler of another kind that holds CUPTI, or will: nullptr, or what shows it.
const char* find_other_profiler(Sentence& name);

}  // namespace gputrace
