// What each change would bring, alone and after those that bring more: differences of replays.
#pragma once

#include "analysis/replay/replay.h"
#include "analysis/replay/tape_recorder.h"

namespace gputrace {

// `device_span`: of the device with the longest one, by which windows are scaled to the run.
GainFacts find_gains(TapeRecorder::Recorded recorded, const std::vector<TimelineCopies>& copies, Nanos clock_error);

}  // namespace gputrace
