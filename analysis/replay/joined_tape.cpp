#include "analysis/replay/joined_tape.h"

#include <algorithm>

namespace gputrace {
namespace {

// What each tape holds there, one after the other; it is given back at once.
template <typename T>
std::vector<T> joined(std::span<Tape> tapes, std::vector<T> Tape::*part) {
  if (tapes.size() == 1) return std::move(tapes.front().*part);
  std::size_t count = 0;
  for (const Tape& tape : tapes) count += (tape.*part).size();
  std::vector<T> all;
  all.reserve(count);
  for (Tape& tape : tapes) {
    const std::vector<T> own = std::exchange(tape.*part, {});
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

// Calls are asked for by thread.
std::vector<TapeCall> calls_by_thread(std::span<Tape> tapes) {
  if (tapes.size() == 1) return std::move(tapes.front().calls);
  std::vector<std::size_t> next{0};  // by thread: where its next one goes
  for (const Tape& tape : tapes) {
    for (const TapeCall& each : tape.calls) {
      if (each.thread + 1u >= next.size()) next.resize(each.thread + 2u);
      ++next[each.thread + 1u];
    }
  }
  for (std::size_t thread = 1; thread < next.size(); ++thread) next[thread] += next[thread - 1];
  std::vector<TapeCall> calls(next.back());
  for (Tape& tape : tapes) {
    for (const TapeCall& each : std::exchange(tape.calls, {})) calls[next[each.thread]++] = each;
  }
  return calls;
}

}  // namespace

JoinedTape::JoinedTape(std::span<Tape> tapes)
    : first(tapes.front().first),
      begin(tapes.front().begin()),
      first_wait(tapes.front().first_wait),
      first_copy(tapes.front().first_copy),
      calls(calls_by_thread(tapes)),
      waited(joined(tapes, &Tape::waited)),
      copies(joined(tapes, &Tape::copies)),
      waits(joined(tapes, &Tape::waits)) {
  for (std::size_t i = 0; i < tapes.size(); ++i) {
    std::vector<TapeOperation>& own = tapes[i].operations;
    const u32 next = i + 1 < tapes.size() ? tapes[i + 1].begin() : 0;
    if (next != 0) own.resize(Tape::kPiece);
    operations.add(std::move(own));
    for (u32 at = tapes[i].begin() + Tape::kPiece; at < next; at += Tape::kPiece)
      operations.add(std::vector<TapeOperation>(Tape::kPiece));
  }
}

}  // namespace gputrace
