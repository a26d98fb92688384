// The window of the session: only calls that begin within it are recorded (FinishedCall::in_window). GPUTRACE_DELAY,
// _DURATION and _CAPTURE set it. Any thread.
#pragma once

#include "interpose/settings/options.h"

namespace gputrace {

// A session begins; its gate is still closed. `forked`: the process had one before, or its parent.
void open_window(const Options& options, bool forked);

}  // namespace gputrace
