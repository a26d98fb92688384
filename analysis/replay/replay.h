// Replays a tape: when each call would begin and each operation would start, had some of it taken another time. What was
// measured is kept where nothing was changed, so the unchanged replay is the run itself; where it is not, that is the
// model's error.
//
//   thread     ──work──▶ call ──work──▶ wait ······▶ (end of what it waits for + wake-up)
//                          │ way                ▲
//   device     ············└──▶ operation ──────┘     start = max(call + way, ends of what it waits for + chain)
//
//   · Calls take as long as they took; a call that blocked ends when what it waited for ends, and its wake-up.
//   · Of `way` and `chain` one was seen (the later one made the operation start when it did); the other is the usual one.
//   · Threads whose calls never overlap hand the work to each other: they are one thread here.
//   · What waits for something that is on no tape starts no sooner than it did.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "analysis/facts/gain_facts.h"
#include "analysis/facts/launch_loops.h"
#include "analysis/facts/timeline_facts.h"
#include "analysis/replay/joined_tape.h"

namespace gputrace {

using WhatIfs = u32;  // bits, by WhatIf
constexpr WhatIfs bit(WhatIf what) { return 1u << static_cast<unsigned>(what); }
inline constexpr WhatIfs kAllWhatIfs = (1u << kWhatIfs) - 1;

class Replay {
 public:
  // `copies`: what groups of copies are, by TapeCopy::group, `kernels`: what of them a change would save, by TapeOperation::target. They
  // outlive it.
  Replay(JoinedTape tape, const std::vector<TimelineCopies>& copies, const KernelChanges& kernels);

  // 0: nothing on the tape ran.
  Nanos measured() const { return last_ - first_; }
  Nanos span_with(WhatIfs changes);
  // How often a change applies.
  u64 touched(WhatIf what) const { return touched_[static_cast<unsigned>(what)]; }
  // Kernels, memsets, copies on the device and graphs that calls launched, and those that are graphs, or in sequences that come again and again.
  u64 launches() const { return launches_; }
  u64 launches_repeated() const { return launches_repeated_; }

 private:
  enum class Step : u8 { Begin, Start, End };  // a call begins, an operation starts, a call ends
  struct Event {
    u32 index : 30;  // of the operation or call
    u32 step : 2;
  };
  struct Placed;  // an event, when it happened
  static constexpr Nanos kNotSeen = Nanos{-1} << 62;
  // Of its work, where launches that repeat are one graph.
  enum class InGraph : u8 { All, Nothing, UsualWay };
  struct Call {
    Nanos work = 0;  // since the end of the call before it; of a thread's first one: since the first call
    Nanos own = 0;   // what it takes; of calls that block: the least
    u32 thread = kNone, follows = kNone;  // the one after whose call before it `work` begins: its own, mostly
    u32 block = kNone;                    // in blocks_; kNone: it waits for nothing
    HostLog::Kind kind = HostLog::Kind::Other;
    InGraph in_graph : 2 = InGraph::All;
    bool first : 1 = false;          // of its thread
    bool in_sequence : 1 = false;    // a launch that repeats, not the first of its sequence
    bool looped : 1 = false;         // an allocation after work was launched
    bool unneeded_copy : 1 = false;  // a copy to the device for which the host need not wait
  };
  static_assert(sizeof(Call) == 32);
  // What a call waits for.
  struct Block {
    Nanos wake = 0;                  // the call's, from the end of that
    u32 waits = 0, waits_count = 0;  // in waits_
    bool needless = false;
    bool reads = false;  // it waited for a result of at most kResultBytes
  };
  struct Operation {
    Nanos way = 0, chain = 0, length = 0;
    u32 call = kNone;
    u32 kernel = kNone;  // one that a change makes faster
    u32 waits = 0;
    u32 more = kNone;  // in more_; kNone: nothing of that
    u8 waits_count = 0;
    bool to_device = false, to_host = false;  // copies
    bool in_sequence = false;
    bool function = false;
  };
  static_assert(sizeof(Operation) == 48);
  // What few operations have.
  struct More {
    Nanos pinned_length = kNotSeen;  // of a copy that would be faster from pinned memory
    Nanos no_sooner = 0;             // 0: it may
  };

  void mend_order(const JoinedTape& tape);
  bool join_threads(JoinedTape& tape);
  void tie_operations(JoinedTape& tape);
  void take_calls(JoinedTape& tape);
  void find_sequences(const JoinedTape& tape, const std::vector<TimelineCopies>& copies);
  std::vector<u32> by_call(std::vector<u32>& begins) const;
  void find_lags(const JoinedTape& tape);
  void find_blocking(const JoinedTape& tape, const std::vector<TimelineCopies>& copies);
  void find_copies(const JoinedTape& tape, const std::vector<TimelineCopies>& copies);
  void find_kernels(const JoinedTape& tape);
  void infer_functions(JoinedTape& tape);
  // Each in waits_.
  template <typename Waiting>
  std::span<u32> waits_of(const JoinedTape& tape, const Waiting& each) {
    return {waits_.data() + (each.waits - tape.first_wait), each.waits_count};
  }
  Nanos end_of_waits(const JoinedTape& tape, std::span<const u32> waits, Nanos until) const;
  void find_waits(const JoinedTape& tape, const std::vector<TimelineCopies>& copies);
  void find_implicit_waits(const JoinedTape& tape);
  Block& block_of(u32 call);
  void block(u32 call, u32 waits, u32 count, const JoinedTape& tape);
  bool blocks(const Call& call) const { return call.block != kNone && blocks_[call.block].waits_count != 0; }
  std::span<const u32> waits_of(const Block& block) const { return {waits_.data() + block.waits, block.waits_count}; }
  More& more_of(u32 operation);
  Nanos pinned_length(const Operation& operation) const;
  template <typename Visit>
  void for_each_event(const JoinedTape& tape, Visit&& visit) const;
  Placed placed(const JoinedTape& tape, const Event& event) const;
  void order(const JoinedTape& tape);
  Nanos begin_of(const Call& call, WhatIfs changes) const;
  Nanos end_of(const Call& call, Nanos begin, WhatIfs changes) const;
  Nanos end_with(Nanos end, const Block& block, Nanos wake) const;
  Nanos start_of(u32 index, WhatIfs changes);
  Nanos length_of(const Operation& operation, WhatIfs changes) const;
  void find_turns(const JoinedTape& tape);
  void count_touched();

  const KernelChanges& kernels_;
  std::vector<Event> events_;
  std::vector<Call> calls_;
  std::vector<Block> blocks_;
  std::vector<Operation> operations_;
  std::vector<More> more_;
  std::vector<u32> waits_;  // indices in operations_; kNone: of none
  // Of one replay: begins of calls; ends of operations, and of all that they stood behind; where each thread is.
  std::vector<Nanos> begins_, finishes_, behind_, threads_;
  std::array<u64, kWhatIfs> touched_{};
  u64 launches_ = 0, launches_repeated_ = 0;
  Nanos first_ = 0, last_ = 0;
  Nanos usual_wake_ = 0, usual_own_ = 0, usual_way_ = 0;  // usual_way_: of the host, from one launch to the next
};

}  // namespace gputrace
