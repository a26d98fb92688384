// What each change would bring, alone and after those that bring more: differences of replays.
#pragma once

#include "analysis/replay/replay.h"
#include "analysis/replay/tape_recorder.h"

namespace gputrace {

// `copies`, `kernels`: as Replay has them.
GainFacts find_gains(TapeRecorder::Recorded recorded, const std::vector<TimelineCopies>& copies,
                     const KernelChanges& kernels);

}  // namespace gputrace
