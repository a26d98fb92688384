// The window of the session: only calls that begin within it are recorded (FinishedCall::in_window). GPUTRACE_DELAY,
// _DURATION and _CAPTURE set it. Any thread.
#pragma once

#include "interpose/options.h"

namespace gputrace {

// A session begins; its gate is still closed. `forked`: the process had one before, or its parent.
void open_window(const Options& options, bool forked);

// cuProfilerStart and cuProfilerStop under GPUTRACE_CAPTURE=profiler-api; nothing otherwise.
void set_profiler_range(bool begin, Ticks now);
// A range that rules the window begins or ends, whatever told it: from `now` on records are wanted, or are not. With a
// duration the window ends by itself.
void set_capture_range(bool begin, Ticks now);

}  // namespace gputrace
