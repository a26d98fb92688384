// Host and device become one: what a Timeline found is added to what the pass found, once both are done.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/facts/timeline_facts.h"

namespace gputrace {

// `facts`: the pass's side. Its kernels, functions, copies and contexts are put into the timeline's order, with what
// device records alone led to between them, and every index among its facts is changed accordingly.
void merge_timeline(TimelineFacts&& device, ProcessTrace& facts);

}  // namespace gputrace
