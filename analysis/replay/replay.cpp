#include "analysis/replay/replay.h"

#include <algorithm>
#include <bit>

namespace gputrace {
namespace {

constexpr Nanos kPooled = 1'000;   // an allocation from a pool
constexpr Nanos kInGraph = 1'500;  // from one node of a graph to the next

}  // namespace

struct Replay::Placed {
  Nanos at;
  u32 index, call;
  u8 step, rank;  // rank: at one instant

  // At one instant: what started by an earlier call, then ends of earlier calls, then the calls that begin, one after the other.
  bool operator<(const Placed& other) const {
    if (at != other.at) return at < other.at;
    if (rank != other.rank) return rank < other.rank;
    if (rank == 2 && call != other.call) return call < other.call;
    return step != other.step ? step < other.step : index < other.index;
  }
};

inline Replay::Placed Replay::placed(const JoinedTape& tape, const Event& event) const {
  const u32 index = event.index;
  const auto step = static_cast<u8>(event.step);
  const u32 by = static_cast<Step>(step) == Step::Start ? operations_[index].call : index;
  const TapeCall& call = tape.calls[by];
  if (static_cast<Step>(step) == Step::Begin) return {call.begin, index, by, step, 2};
  if (static_cast<Step>(step) == Step::End) {
    const Nanos end = std::max(call.begin, call.end);
    return {end, index, by, step, static_cast<u8>(end > call.begin ? 1 : 2)};
  }
  const Nanos start = std::max(call.begin, tape.operations[index].start);
  return {start, index, by, step, static_cast<u8>(start > call.begin ? 0 : 2)};
}

// With its time.
template <typename Visit>
void Replay::for_each_event(const JoinedTape& tape, Visit&& visit) const {
  const auto event = [](u32 index, Step step) { return Event{index, static_cast<u32>(step)}; };
  for (u32 i = 0; i < calls_.size(); ++i) {
    const TapeCall& each = tape.calls[i];
    if (each.begin < first_ || each.begin >= last_) continue;
    visit(event(i, Step::Begin), each.begin);
    visit(event(i, Step::End), std::max(each.begin, each.end));
  }
  for (u32 i = 0; i < operations_.size(); ++i) {
    const TapeOperation& each = tape.operations[i];
    if (each.finish == 0 || operations_[i].call == kNone) continue;
    visit(event(i, Step::Start), std::max(each.start, tape.calls[operations_[i].call].begin));
  }
}

// Into pieces of time first, then each piece by itself: what is sorted at a time lies in the nearest cache.
void Replay::order(const JoinedTape& tape) {
  constexpr std::size_t kInAPiece = 16;  // events at most, about: so few are sorted by insertion
  Nanos from = last_, to = first_;
  std::size_t count = 0;
  for_each_event(tape, [&](const Event&, Nanos at) {
    from = std::min(from, at), to = std::max(to, at);
    ++count;
  });
  // A power of two, at least two: times that a file chose may lie as far apart as numbers do, and are not moved by 64 bits.
  const std::size_t pieces = std::bit_ceil(count / kInAPiece + 2);
  const unsigned bits_of_piece = static_cast<unsigned>(std::bit_width(pieces)) - 1;
  const u64 range = static_cast<u64>(to) - static_cast<u64>(from);
  const unsigned shift = std::max(static_cast<unsigned>(std::bit_width(range)), bits_of_piece) - bits_of_piece;
  const auto piece_of = [&](Nanos at) { return (static_cast<u64>(at) - static_cast<u64>(from)) >> shift; };
  std::vector<u32> ends(pieces + 1);  // first where each begins; where it ends once its events are there
  for_each_event(tape, [&](const Event&, Nanos at) { ++ends[piece_of(at) + 1]; });
  for (std::size_t i = 0; i < pieces; ++i) ends[i + 1] += ends[i];
  events_.resize(count);
  for_each_event(tape, [&](const Event& event, Nanos at) { events_[ends[piece_of(at)]++] = event; });
  std::vector<Placed> piece;
  u32 begin = 0;
  for (std::size_t i = 0; i < pieces; begin = ends[i++]) {
    piece.clear();
    for (u32 at = begin; at < ends[i]; ++at) piece.push_back(placed(tape, events_[at]));
    std::sort(piece.begin(), piece.end());
    for (u32 at = begin; at < ends[i]; ++at) events_[at] = {piece[at - begin].index, piece[at - begin].step};
  }
  begins_.reserve(tape.calls.size());
  for (const TapeCall& each : tape.calls) begins_.push_back(each.begin);  // of those that are not replayed
}

Nanos Replay::begin_of(const Call& call, WhatIfs changes) const {
  if (call.first) return first_ + call.work;
  const Nanos before = std::max(threads_[call.thread], threads_[call.follows]);
  if (changes & bit(WhatIf::HostWork)) return before;
  if (call.in_graph == InGraph::All || !(changes & bit(WhatIf::Launches))) return before + call.work;
  return call.in_graph == InGraph::Nothing ? before : before + std::min(call.work, usual_way_);
}

Nanos Replay::end_of(const Call& call, Nanos begin, WhatIfs changes) const {
  constexpr WhatIfs kOfCalls = bit(WhatIf::Waits) | bit(WhatIf::Results) | bit(WhatIf::Copies) | bit(WhatIf::Launches) |
                               bit(WhatIf::Allocations) | bit(WhatIf::Modules) | bit(WhatIf::Polling);
  if ((changes & kOfCalls) == 0) {
    if (call.block == kNone) return begin + call.own;
    return end_with(begin + call.own, blocks_[call.block], blocks_[call.block].wake);
  }
  const auto with = [changes](WhatIf what) { return (changes & bit(what)) != 0; };
  Nanos own = call.own;
  if (with(WhatIf::Launches) && call.in_sequence) own = 0;
  if (with(WhatIf::Allocations) && call.looped) own = std::min(own, kPooled);
  if (with(WhatIf::Modules) && call.kind == HostLog::Kind::Module) own = 0;
  if (call.block == kNone) return begin + own;
  const Block& block = blocks_[call.block];
  const bool saved = (with(WhatIf::Waits) && block.needless) || (with(WhatIf::Results) && block.reads) ||
                     (with(WhatIf::Copies) && call.unneeded_copy) || (with(WhatIf::Allocations) && call.looped) ||
                     (with(WhatIf::Modules) && call.kind == HostLog::Kind::Module);
  if (saved) return begin + own;
  const bool polls = with(WhatIf::Polling) && call.kind == HostLog::Kind::Query;
  return end_with(begin + own, block, polls ? std::min(block.wake, usual_wake_) : block.wake);
}

// Of a call that ends then at the earliest, and once what it waits for has ended.
Nanos Replay::end_with(Nanos end, const Block& block, Nanos wake) const {
  for (const u32 before : waits_of(block)) {
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
  const Nanos no_sooner = operation.more == kNone ? 0 : more_[operation.more].no_sooner;
  Nanos all = 0, start = std::max(begins_[operation.call] + operation.way, no_sooner);
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
  if (changes & bit(WhatIf::Copies)) length = pinned_length(operation);
  if (operation.kernel == kNone) return length;
  double left = 1;
  for (unsigned i = kFirstOfKernels; i < kWhatIfs; ++i) {
    if (changes & 1u << i) left *= 1 - static_cast<double>(kernels_.of(static_cast<WhatIf>(i), operation.kernel));
  }
  return left < 1 ? static_cast<Nanos>(static_cast<double>(length) * left) : length;
}

[[gnu::flatten]] Nanos Replay::span_with(WhatIfs changes) {
  std::fill(threads_.begin(), threads_.end(), 0);
  finishes_.assign(operations_.size(), 0);
  if (changes & bit(WhatIf::Overlap)) behind_.assign(operations_.size(), 0);
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
