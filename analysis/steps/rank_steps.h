// The ranks of one job, held against each other step by step: who is behind the others, and with what. What a rank spends in
// collectives is mostly waiting for the last one, so that ranks are compared by what their steps would take without that: the rest of
// them, and what collectives take the rank that waits least; but no less than the host is busy for them, which goes on while its device
// waits. (A rank that began earlier is ahead for ever where all hosts are as slow: its device waits in each collective, and nobody
// would be quicker without that.)
#pragma once

#include <vector>

#include "analysis/steps/find_steps.h"

namespace gputrace {

struct RankSteps {
  std::size_t process = 0;  // index in LoadedRun::processes
  i64 rank = 0;
  StepStatistics steps;
  u64 alone_ns = 0;  // a mean step without waiting for other ranks
  double score = 0;  // alone_ns is so much more than the median rank's, in mean steps: 0.1: a tenth of a step
  StepCategory most = StepCategory::Other;  // on what it spends most more than the median rank
  u64 more_ns = 0;                          // and how much, of a mean step

  u64 part(StepCategory category) const { return steps.mean_parts[static_cast<unsigned>(category)]; }
};

// By rank; where a launcher started its ranks anew, those of the newest start that came to steps. Empty: fewer than two ranks have steps whose
// time is divided, or one number is several processes' of one start.
std::vector<RankSteps> rank_steps(const LoadedRun& run);

// The rank that the others wait for: nullptr where none is a twentieth of a step behind.
const RankSteps* straggler_of(const std::vector<RankSteps>& ranks);

}  // namespace gputrace
