// The same collective on all ranks of a communicator: the i-th of each, by the communicator's unique id. Transfer is
// its shortest duration over the ranks, the rest of each rank's duration is wait for the others. (A collective kernel
// starts when its rank is ready and ends on all ranks together, so the last to arrive has the shortest one.)
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Of one library row of one process.
struct CollectiveTime {
  u64 matched = 0;  // calls that were found on every rank, with a device time on each
  u64 wait_ns = 0, transfer_ns = 0;
};

class CollectiveTimes {
 public:
  std::vector<std::vector<CollectiveTime>> rows;  // by process, by row
  const CollectiveTime& of(std::size_t process, u32 row) const { return rows[process][row]; }
};

// A communicator is matched when all its ranks are there, each once, with equally many collectives of the same
// operations and sizes: where one is missing or records were lost, none of its collectives is.
CollectiveTimes match_collectives(const LoadedRun& run);

}  // namespace gputrace
