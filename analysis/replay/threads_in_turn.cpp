// Replay: which threads wait for each other.
#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "analysis/replay/replay.h"

namespace gputrace {

namespace {

// Calls `visit` with the index of each call, in the order of their begins, until it returns false. The calls of each thread follow each other,
// in that order.
template <typename Visit>
void in_time(const std::vector<TapeCall>& calls, Visit&& visit) {
  struct Next {
    Nanos begin;
    u32 index, end;  // end: of its thread's calls
    bool operator>(const Next& other) const { return begin != other.begin ? begin > other.begin : index > other.index; }
  };
  std::priority_queue<Next, std::vector<Next>, std::greater<>> threads;
  for (u32 i = 0; i < calls.size();) {
    const u32 first = i;
    while (i < calls.size() && calls[i].thread == calls[first].thread) ++i;
    threads.push({calls[first].begin, first, i});
  }
  while (!threads.empty()) {
    Next next = threads.top();
    threads.pop();
    // As long as it is this thread's turn.
    do {
      if (!visit(next.index)) return;
      if (++next.index == next.end) break;
      next.begin = calls[next.index].begin;
    } while (threads.empty() || !(next > threads.top()));
    if (next.index != next.end) threads.push(next);
  }
}

}  // namespace

// Threads of which one waits while another calls: their calls never overlap, and they take turns. Whether there were several, and are one now.
bool Replay::join_threads(JoinedTape& tape) {
  const TapeCall* before = nullptr;
  bool apart = true, several = false;
  in_time(tape.calls, [&](u32 at) {
    const TapeCall& call = tape.calls[at];
    if (before && before->thread != call.thread) several = true, apart = call.begin >= before->end;
    before = &call;
    return apart;
  });
  if (!apart || !several) return false;
  for (TapeCall& each : tape.calls) each.thread = 0;
  for (std::size_t i = 0; i < tape.operations.size(); ++i) tape.operations[i].thread = 0;
  for (TapeWait& each : tape.waited) each.thread = 0;
  return true;
}

// A thread that makes no call while one of the others is in one waits for them, and they for it, as who starts threads for the parts of a model and
// joins them: its next call follows the last one of theirs, and theirs its own. They may call at the same time among themselves.
void Replay::find_turns(const JoinedTape& tape) {
  constexpr u64 kFewest = 64;  // turns; fewer calls that do not meet may be chance
  std::unordered_map<u32, u64> counts;
  for (const TapeCall& each : tape.calls) ++counts[each.thread];
  if (counts.size() < 2) return;
  u32 main = kNone;           // it was there first
  Nanos own = 0, others = 0;  // latest end of a call, on either side
  u64 turns = 0;
  bool was_main = true, meet = false;
  in_time(tape.calls, [&](u32 at) {
    const TapeCall& call = tape.calls[at];
    if (main == kNone) main = call.thread;
    const bool is_main = call.thread == main;
    meet = call.begin < (is_main ? others : own);
    turns += is_main != was_main;
    was_main = is_main;
    (is_main ? own : others) = std::max(is_main ? own : others, call.end);
    return !meet;
  });
  if (meet || turns < kFewest) return;
  std::unordered_map<u32, Nanos> ends;  // of each thread's newest call
  u32 last = kNone;                     // of the others: the one whose call ended last
  in_time(tape.calls, [&](u32 at) {
    const TapeCall& call = tape.calls[at];
    Call& made = calls_[at];
    const u32 other = call.thread == main ? last : main;
    const auto known = ends.find(call.thread);
    const Nanos before = known == ends.end() ? 0 : known->second;
    if (other != kNone && ends.contains(other) && ends[other] > std::max(before, first_) && call.begin >= first_) {
      made.follows = other, made.first = false;
      made.work = std::max<Nanos>(0, call.begin - ends[other]);
    }
    ends[call.thread] = std::max(before, call.end);
    if (call.thread != main && (last == kNone || ends[call.thread] >= ends[last])) last = call.thread;
    return true;
  });
}

}  // namespace gputrace
