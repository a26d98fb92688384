#include "analysis/replay/replay.h"

#include <algorithm>
#include <bit>

namespace gputrace {
namespace {

constexpr Nanos kPooled = 1'000;   // an allocation from a pool
constexpr Nanos kInGraph = 1'500;  // from one node of a graph to the next

}  // namespace

namespace {

// An event of a replay: when it happened, what it is of, and by which call.
struct Placed {
  Nanos at;
  u32 index, call;
  u8 step, rank;  // rank: at one instant
};

// At one instant: what started by an earlier call, then ends of earlier calls, then the calls that begin, one after the other.
bool comes_first(const Placed& a, const Placed& b) {
  if (a.at != b.at) return a.at < b.at;
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.rank == 2 && a.call != b.call) return a.call < b.call;
  return a.step != b.step ? a.step < b.step : a.index < b.index;
}

}  // namespace

template <typename Visit>
void Replay::for_each_event(const Tape& tape, Visit&& visit) const {
  constexpr auto kBegin = static_cast<u8>(Step::Begin), kEnd = static_cast<u8>(Step::End);
  for (u32 i = 0; i < calls_.size(); ++i) {
    const TapeCall& each = tape.calls[i];
    if (each.begin < first_ || each.begin >= last_) continue;
    visit(Placed{each.begin, i, i, kBegin, 2});
    const Nanos end = std::max(each.begin, each.end);
    visit(Placed{end, i, i, kEnd, static_cast<u8>(end > each.begin ? 1 : 2)});
  }
  for (u32 i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if (each.finish == 0 || operations_[i].call == kNone) continue;
    const Nanos begin = tape.calls[operations_[i].call].begin;
    const Nanos start = std::max(each.start, begin);
    visit(Placed{start, i, operations_[i].call, static_cast<u8>(Step::Start), static_cast<u8>(start > begin ? 0 : 2)});
  }
}

// Into pieces of time first, then each piece by itself: what is sorted at a time lies in the nearest cache.
void Replay::order(const Tape& tape) {
  constexpr std::size_t kInAPiece = 32;  // events, about
  Nanos from = last_, to = first_;
  std::size_t count = 0;
  for_each_event(tape, [&](const Placed& event) {
    from = std::min(from, event.at), to = std::max(to, event.at);
    ++count;
  });
  // A power of two, at least two: times that a file chose may lie as far apart as numbers do, and are not moved by 64 bits.
  const std::size_t pieces = std::bit_ceil(count / kInAPiece + 2);
  const unsigned bits_of_piece = static_cast<unsigned>(std::bit_width(pieces)) - 1;
  const u64 range = static_cast<u64>(to) - static_cast<u64>(from);
  const unsigned shift = std::max(static_cast<unsigned>(std::bit_width(range)), bits_of_piece) - bits_of_piece;
  const auto piece_of = [&](const Placed& event) {
    return (static_cast<u64>(event.at) - static_cast<u64>(from)) >> shift;
  };
  std::vector<u32> begins(pieces + 1);
  for_each_event(tape, [&](const Placed& event) { ++begins[piece_of(event) + 1]; });
  for (std::size_t i = 0; i < pieces; ++i) begins[i + 1] += begins[i];
  std::vector<Placed> placed(count);
  std::vector<u32> next(begins.begin(), begins.end() - 1);
  for_each_event(tape, [&](const Placed& event) { placed[next[piece_of(event)]++] = event; });
  for (std::size_t i = 0; i < pieces; ++i)
    std::sort(placed.begin() + begins[i], placed.begin() + begins[i + 1], comes_first);
  events_.reserve(count);
  for (const Placed& each : placed) events_.push_back({each.index, each.step});
  for (const TapeCall& each : tape.calls) begins_.push_back(each.begin);  // of those that are not replayed
  finishes_.resize(operations_.size());
  behind_.resize(operations_.size());
}

Nanos Replay::begin_of(const Call& call, WhatIfs changes) const {
  if (call.first) return first_ + call.work;
  const Nanos before = std::max(threads_[call.thread], threads_[call.follows]);
  if (changes & bit(WhatIf::HostWork)) return before;
  return before + (changes & bit(WhatIf::Launches) ? call.work_in_graph : call.work);
}

Nanos Replay::end_of(const Call& call, Nanos begin, WhatIfs changes) const {
  constexpr WhatIfs kOfCalls = bit(WhatIf::Waits) | bit(WhatIf::Results) | bit(WhatIf::Copies) | bit(WhatIf::Launches) |
                               bit(WhatIf::Allocations) | bit(WhatIf::Modules) | bit(WhatIf::Polling);
  if ((changes & kOfCalls) == 0) return end_with(begin + call.own, call, call.wake);
  const auto with = [changes](WhatIf what) { return (changes & bit(what)) != 0; };
  Nanos own = call.own, wake = call.wake;
  bool waits = true;
  if (with(WhatIf::Waits) && call.needless) waits = false;
  if (with(WhatIf::Results) && call.reads) waits = false;
  if (with(WhatIf::Copies) && call.unneeded_copy) waits = false;
  if (with(WhatIf::Launches) && call.in_sequence) own = 0;
  if (with(WhatIf::Allocations) && call.looped) waits = false, own = std::min(own, kPooled);
  if (with(WhatIf::Modules) && call.kind == HostLog::Kind::Module) waits = false, own = 0;
  if (with(WhatIf::Polling) && call.kind == HostLog::Kind::Query) wake = std::min(wake, usual_wake_);
  return waits ? end_with(begin + own, call, wake) : begin + own;
}

// Of a call that ends then at the earliest, and once what it waits for has ended.
Nanos Replay::end_with(Nanos end, const Call& call, Nanos wake) const {
  for (u32 i = 0; i < call.waits_count; ++i) {
    const u32 before = waits_[call.waits + i];
    if (before != kNone && finishes_[before] != 0) end = std::max(end, finishes_[before] + wake);
  }
  return end;
}

// With Overlap: a copy to a second buffer does not wait for kernels, and nothing on the device waits for a copy to the host;
// what stands behind them waits for what they stood behind.
Nanos Replay::start_of(u32 index, WhatIfs changes) {
  const Operation& operation = operations_[index];
  const bool sequence = (changes & bit(WhatIf::Launches)) && operation.in_sequence;
  const Nanos chain = sequence ? kInGraph : operation.chain;
  const bool overlap = (changes & bit(WhatIf::Overlap)) != 0;
  Nanos all = 0, start = std::max(begins_[operation.call] + operation.way, operation.no_sooner);
  for (u32 i = 0; i < operation.waits_count; ++i) {
    const u32 before = waits_[operation.waits + i];
    if (before == kNone || finishes_[before] == 0) continue;
    const Operation& other = operations_[before];
    Nanos end = finishes_[before];
    if (overlap && (other.to_host || other.to_device)) {
      if (other.to_host && !operation.to_host) end = 0;
      end = std::max(end, behind_[before]);
    }
    all = std::max(all, end);
    const bool aside = overlap && operation.to_device && !other.to_device;
    if (end != 0 && !aside) start = std::max(start, end + chain);
  }
  if (overlap) behind_[index] = all;
  return start;
}

// Changes of one kernel follow each other: each saves its share of what the others left.
Nanos Replay::length_of(const Operation& operation, WhatIfs changes) const {
  if ((changes & bit(WhatIf::HostFunctions)) && operation.function) return 0;
  Nanos length = operation.length;
  if (changes & bit(WhatIf::Copies)) length = std::min(length, operation.pinned_length);
  if (operation.kernel == kNone) return length;
  double left = 1;
  for (unsigned i = kFirstOfKernels; i < kWhatIfs; ++i) {
    if (changes & 1u << i) left *= 1 - static_cast<double>(kernels_.of(static_cast<WhatIf>(i), operation.kernel));
  }
  return left < 1 ? static_cast<Nanos>(static_cast<double>(length) * left) : length;
}

[[gnu::flatten]] Nanos Replay::span_with(WhatIfs changes) {
  std::fill(threads_.begin(), threads_.end(), 0);
  std::fill(finishes_.begin(), finishes_.end(), 0);
  if (changes & bit(WhatIf::Overlap)) std::fill(behind_.begin(), behind_.end(), 0);
  Nanos last = 0;
  for (const Event& event : events_) {
    const auto step = static_cast<Step>(event.step);
    if (step == Step::Begin) {
      begins_[event.index] = begin_of(calls_[event.index], changes);
      continue;
    }
    if (step == Step::End) {
      const Call& call = calls_[event.index];
      threads_[call.thread] = end_of(call, begins_[event.index], changes);
      continue;
    }
    const Operation& operation = operations_[event.index];
    finishes_[event.index] = start_of(event.index, changes) + length_of(operation, changes);
    if (!operation.function) last = std::max(last, finishes_[event.index]);
  }
  return std::max<Nanos>(0, last - first_);
}

}  // namespace gputrace
