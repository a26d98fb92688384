// Waits for the batches of a loader that sets no mark, as looks at the threads found them.
//   · Between two launches, copies or waits of the process a thread's looks find it asking a loader. What lies between the same two kinds
//     of events is told as one: a loop's turns are alike, and there are fewer looks than turns.
//   · Of such places those count where looks are enough and two thirds of them found it there.
#pragma once

#include "analysis/facts/facts.h"

namespace gputrace {

// The marks of threads that ask a loader for batches and make no step of their own (a thread that loads ahead and hands them over), taken out of
// the process's events: what such a thread waits for is no wait of the loop's, while there are batches in between. In order, those of several
// threads that overlap as one.
std::vector<LoopEvent> take_asked_ahead(ProcessTrace& process);

// Adds the loop's waits to the process's events as marks (LoopMark::NextBatch), in the order of the begins, and names the loader. Only where no
// framework told of one in the loop. `ahead`: when another thread asked; a thread of the loop's that waits for others meanwhile waits for that
// one. The steps are known already: they are not found by these.
void add_sampled_batches(ProcessTrace& process, const std::vector<LoopEvent>& ahead);

}  // namespace gputrace
