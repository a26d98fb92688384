// What a run consists of besides its steps: start-up, warm-up, evaluation, saving.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// The end of an evaluation's last batch is where a model begins to be saved, not where the next batch is asked for. Events in the order of
// their begins; the steps are not divided yet.
void end_before_saving(const LoopLog& log, StepFacts& facts);

// Steps in which the program saves its state: copies to the host are made in functions that do that; where lines are not known, much more is
// copied to the host than in others. Events in the order of their begins.
void mark_checkpoints(ProcessTrace& process);

// From the first record to the last, one after the other, without a gap.
std::vector<PhaseSpan> phases_of(const ProcessTrace& process);

}  // namespace gputrace
