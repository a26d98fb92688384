// Facts of the process, its contexts and its devices, each recorded once a session, at the first call that shows it.
#pragma once

#include "interpose/definition/facts.h"

namespace gputrace {

// A new session: nothing is recorded yet. Its gate is still closed.
void reset_context_facts();
// cuDevicePrimaryCtxRetain has succeeded.
void primary_context_retained(i64 device, u64 context);
// cuInit has succeeded.
void process_ready(const FinishedCall& call);

}  // namespace gputrace
