#include "analysis/facts/launch_loops.h"

#include <algorithm>

namespace gputrace {
namespace {

constexpr u64 kSeed = 0x9e3779b97f4a7c15ull;

u64 mixed(u64 hash, u64 value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdull;
  return hash ^ (hash >> 32);
}

}  // namespace

bool LaunchLoops::gave(Thread& state) {
  const bool needless = state.waiting && !sees_device_memory_;
  facts_.needless_waits += needless;
  if (needless) facts_.needless_by_origin.add(state.spent.origin, state.spent.nanos);
  if (state.read) {
    ++facts_.result_waits;
    facts_.results_by_origin.add(state.spent.origin, state.spent.nanos);
  }
  state.waiting = state.read = false;
  state.launched = true;
  ++state.given;
  return needless;
}

bool LaunchLoops::replayed(u32 thread) {
  const bool needless = gave(threads_[thread]);
  spoiled(thread);
  return needless;
}

bool LaunchLoops::launched(u32 thread, u32 kernel, u64 stream, u64 call_ns) {
  Thread& state = threads_[thread];
  const bool needless = gave(state);
  if (state.launches++ == 0) {
    state.hash = kSeed;
    state.first = kernel;
  }
  state.hash = mixed(mixed(state.hash, kernel), stream);
  state.last = kernel;
  state.call_ns += call_ns;
  return needless;
}

void LaunchLoops::waited(u32 thread, u64 event, Spent spent) {
  Thread& state = threads_[thread];
  bool holds_back = false;
  if (event != 0) {
    const auto known = recorded_.find(event);
    holds_back = known == recorded_.end() || known->second.thread != thread || known->second.given != state.given;
  }
  if (state.launched) {
    ++facts_.waits;
    state.waiting = !holds_back && state.copies == copies_;
  }
  state.launched = false;
  state.copies = copies_;
  state.read = state.result;
  state.result = false;
  state.spent = spent;
  end_sequence(state);
}

void LaunchLoops::copied_to_host(u32 thread, bool synchronous, u64 bytes, Spent spent) {
  Thread& state = threads_[thread];
  const bool small = bytes <= kResultBytes;
  if (!synchronous) {
    ++copies_;
    state.result = small;  // a larger one behind it is what is waited for
    return;
  }
  state.read = small;
  state.spent = spent;
  state.waiting = false;
  state.launched = false;
  end_sequence(state);
}

void LaunchLoops::end_sequence(Thread& state) {
  if (state.launches >= kShortest && !state.spoiled) {
    const u64 key = mixed(state.hash, state.launches);
    auto known = sequences_.find(key);
    if (known == sequences_.end() && sequences_.size() < kMostSequences)
      known = sequences_.emplace(key, LaunchSequence{state.launches, 0, 0, state.first, state.last}).first;
    if (known != sequences_.end()) {
      ++known->second.times;
      known->second.call_ns += state.call_ns;
    }
  }
  state.launches = state.call_ns = 0;
  state.spoiled = false;
}

LaunchLoopFacts LaunchLoops::finish() {
  for (const auto& [key, sequence] : sequences_) {
    if (sequence.times >= 2) facts_.sequences.push_back(sequence);
  }
  std::sort(facts_.sequences.begin(), facts_.sequences.end(), [](const LaunchSequence& a, const LaunchSequence& b) {
    return a.call_ns != b.call_ns ? a.call_ns > b.call_ns : a.first < b.first;
  });
  return std::move(facts_);
}

}  // namespace gputrace
