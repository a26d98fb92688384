// What a run consists of besides its steps: start-up, warm-up, evaluation, saving.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Steps in which much more is copied to the host than in others are those in which the program saves its state.
// `events` in the order of their begins.
void mark_checkpoints(const std::vector<LoopEvent>& events, StepFacts& facts);

// From the first record to the last, one after the other, without a gap.
std::vector<PhaseSpan> phases_of(const ProcessTrace& process);

}  // namespace gputrace
