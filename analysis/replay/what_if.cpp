#include "analysis/replay/what_if.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace gputrace {
namespace {

constexpr double kMostError = 0.05;  // of the span: beyond it the replay is not the run

u64 total(std::vector<Replay>& replays, WhatIfs changes) {
  u64 sum = 0;
  for (Replay& replay : replays) sum += static_cast<u64>(replay.span_with(changes));
  return sum;
}

}  // namespace

GainFacts find_gains(TapeRecorder::Recorded recorded, const std::vector<TimelineCopies>& copies,
                     const KernelChanges& kernels) {
  GainFacts facts;
  facts.operations_of_run = recorded.operations;
  std::vector<Replay> replays;
  const std::size_t at_once = recorded.whole ? std::max<std::size_t>(1, recorded.tapes.size()) : 1;
  for (std::span<Tape> tapes(recorded.tapes); !tapes.empty(); tapes = tapes.subspan(at_once)) {
    JoinedTape tape(tapes.first(at_once));
    const u64 ran = tape.ran();
    if (ran == 0) continue;
    facts.operations += ran;
    const Replay& made = replays.emplace_back(std::move(tape), copies, kernels);
    facts.measured_ns += static_cast<u64>(made.measured());
    facts.launches += made.launches(), facts.launches_repeated += made.launches_repeated();
  }
  facts.windows = replays.size();
  if (replays.empty()) {
    facts.why_not = "no operation of a device was joined to its call";
    return facts;
  }
  facts.replayed_ns = total(replays, 0);
  if (facts.model_error_ratio() > kMostError) {
    facts.why_not = "the replay of the unchanged run takes " + std::to_string(facts.replayed_ns) +
                    " ns, the run took " + std::to_string(facts.measured_ns) + " ns: more than 5 % off";
    return facts;
  }
  std::array<unsigned, kWhatIfs> ranks;
  std::iota(ranks.begin(), ranks.end(), 0u);
  const auto saved = [](u64 before, u64 after) { return before > after ? before - after : u64{0}; };
  const auto applies = [&](unsigned i) {
    const auto touched = [i](const Replay& each) { return each.touched(static_cast<WhatIf>(i)) != 0; };
    return std::any_of(replays.begin(), replays.end(), touched);
  };
  for (unsigned i = 0; i < kWhatIfs; ++i) {
    if (applies(i)) facts.gains[i].single_ns = saved(facts.replayed_ns, total(replays, 1u << i));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](unsigned a, unsigned b) { return facts.gains[a].single_ns > facts.gains[b].single_ns; });
  WhatIfs done = 0;
  facts.floor_ns = facts.replayed_ns;
  for (const unsigned i : ranks) {
    if (!applies(i)) continue;
    const bool first = done == 0;  // that one alone was replayed above
    done |= 1u << i;
    const u64 replayed = first ? facts.replayed_ns - facts.gains[i].single_ns : total(replays, done);
    const u64 left = std::min(facts.floor_ns, replayed);
    facts.gains[i].added_ns = facts.floor_ns - left;
    facts.floor_ns = left;
  }
  return facts;
}

}  // namespace gputrace
