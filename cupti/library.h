// Which libcupti: the one that the program has loaded already, else the one that belongs to its driver or runtime. Two
// copies in one process do not get along, and the first one opened under a name is the one that the program gets later.
#pragma once

#include "base/sentence.h"
#include "base/types.h"
#include "cupti/api.h"
#include "cupti/loader.h"

namespace gputrace {

// Opens one and finds its functions. False: `said` tells why there is none.
bool open_cupti(const DeviceOptions& options, const DeviceHost& host, CuptiApi& api, Sentence& said);
// A profiler of another kind that holds CUPTI, or will: nullptr, or what shows it.
const char* find_other_profiler(const DeviceHost& host, Sentence& name);

}  // namespace gputrace
