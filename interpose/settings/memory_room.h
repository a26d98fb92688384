// How much memory a session may hold where something limits the program's: never so much that a program that lives without us
// would not live with us. Cold; no allocation.
#pragma once

#include "base/types.h"

namespace gputrace {

struct MemoryRoom {
  Bytes bytes = ~0ull;        // 1 % of the limit, and a tenth of what is free below it, whichever is less; ~0: no limit
  const char* limit = "";     // which one, in words
  bool of_addresses = false;  // it counts what is mapped (RLIMIT_AS, RLIMIT_DATA), touched or not
};
// The least of RLIMIT_AS, RLIMIT_DATA and the memory cgroup (v1 or v2), as things are now.
MemoryRoom memory_room();

// What a session is made of within that room.
struct MemoryPlan {
  Bytes ring = 0;                       // 0: there is too little for any
  bool device = false, stacks = false;  // `stacks`: of Python, and operations
};
// Pure. What was asked for is left out where there is not enough for it, device collection last.
MemoryPlan plan_memory(const MemoryRoom& room, Bytes wanted_ring, bool device, bool stacks);

}  // namespace gputrace
