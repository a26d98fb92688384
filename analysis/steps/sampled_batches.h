// Waits for the batches of a loader that sets no mark, as looks at the threads found them.
//   · Between two launches, copies or waits of the process a thread's looks find it asking a loader. What lies between the same two kinds
//     of events is told as one: a loop's turns are alike, and there are fewer looks than turns.
//   · Of such places those count where looks are enough and two thirds of them found it there.
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// Adds them to the process's events as marks (LoopMark::NextBatch), in the order of the begins, and names the loader. Only where no
// framework told of one. The steps are known already: they are not found by these.
void add_sampled_batches(ProcessTrace& process);

}  // namespace gputrace
