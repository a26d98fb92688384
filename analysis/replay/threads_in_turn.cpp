// Replay: which threads wait for each other.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/replay/replay.h"

namespace gputrace {

// Threads of which one waits while another calls: their calls never overlap, and they take turns.
void Replay::join_threads(Tape& tape) {
  std::vector<const TapeCall*> calls;
  for (const TapeCall& each : tape.calls) calls.push_back(&each);
  std::stable_sort(calls.begin(), calls.end(),
                   [](const TapeCall* a, const TapeCall* b) { return a->begin < b->begin; });
  for (std::size_t i = 1; i < calls.size(); ++i) {
    if (calls[i]->thread != calls[i - 1]->thread && calls[i]->begin < calls[i - 1]->end) return;
  }
  for (TapeCall& each : tape.calls) each.thread = 0;
  for (TapeOperation& each : tape.operations) each.thread = 0;
  for (TapeWait& each : tape.waited) each.thread = 0;
}

// A thread that makes no call while one of the others is in one waits for them, and they for it, as who starts threads for the parts of a model and
// joins them: its next call follows the last one of theirs, and theirs its own. They may call at the same time among themselves.
void Replay::find_turns(const Tape& tape) {
  constexpr u64 kFewest = 64;  // turns; fewer calls that do not meet may be chance
  std::unordered_map<u32, u64> counts;
  for (const TapeCall& each : tape.calls) ++counts[each.thread];
  if (counts.size() < 2) return;
  std::vector<u32> order(tape.calls.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return tape.calls[a].begin < tape.calls[b].begin; });
  const u32 main = tape.calls[order.front()].thread;  // it was there first
  Nanos own = 0, others = 0;                          // latest end of a call, on either side
  u64 turns = 0;
  bool was_main = true;
  for (const u32 at : order) {
    const TapeCall& call = tape.calls[at];
    const bool is_main = call.thread == main;
    if (call.begin < (is_main ? others : own)) return;
    turns += is_main != was_main;
    was_main = is_main;
    (is_main ? own : others) = std::max(is_main ? own : others, call.end);
  }
  if (turns < kFewest) return;
  std::unordered_map<u32, Nanos> ends;  // of each thread's newest call
  u32 last = kNone;                     // of the others: the one whose call ended last
  for (const u32 at : order) {
    const TapeCall& call = tape.calls[at];
    Call& made = calls_[at];
    const u32 other = call.thread == main ? last : main;
    const auto known = ends.find(call.thread);
    const Nanos before = known == ends.end() ? 0 : known->second;
    if (other != kNone && ends.contains(other) && ends[other] > std::max(before, first_) && call.begin >= first_) {
      made.follows = other, made.first = false;
      made.work = made.work_in_graph = std::max<Nanos>(0, call.begin - ends[other]);
    }
    ends[call.thread] = std::max(before, call.end);
    if (call.thread != main && (last == kNone || ends[call.thread] >= ends[last])) last = call.thread;
  }
}

}  // namespace gputrace
