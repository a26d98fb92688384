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
#include <vector>

#include "analysis/facts/gain_facts.h"
#include "analysis/facts/launch_loops.h"
#include "analysis/facts/timeline_facts.h"
#include "analysis/replay/tape.h"

namespace gputrace {

using WhatIfs = u32;  // bits, by WhatIf
constexpr WhatIfs bit(WhatIf what) { return 1u << static_cast<unsigned>(what); }
inline constexpr WhatIfs kAllWhatIfs = (1u << kWhatIfs) - 1;

class Replay {
 public:
  // `copies`: what groups of copies are, `kernels`: what of them a change would save, both by TapeOperation::target. They outlive it.
  Replay(Tape tape, const std::vector<TimelineCopies>& copies, const KernelChanges& kernels);

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
  static constexpr Nanos kNotSeen = Nanos{-1} << 62;
  struct Call {
    Nanos work = 0;           // since the end of the call before it; of a thread's first one: since the first call
    Nanos own = 0, wake = 0;  // of calls that block: the least that they take, and from the end of what they wait for
    u32 thread = kNone, follows = kNone;  // the one after whose call before it `work` begins: its own, mostly
    u32 waits = 0, waits_count = 0;       // in waits_
    HostLog::Kind kind = HostLog::Kind::Other;
    bool first = false;  // of its thread
    bool needless = false;
    bool reads = false;          // it waited for a result of at most kResultBytes
    bool in_sequence = false;    // a launch that repeats, not the first of its sequence
    Nanos work_in_graph = 0;     // of `work`, where launches that repeat are one
    bool looped = false;         // an allocation after work was launched
    bool unneeded_copy = false;  // a copy to the device for which the host need not wait
  };
  struct Operation {
    Nanos way = 0, chain = 0, length = 0, pinned_length = 0;
    Nanos no_sooner = 0;  // 0: it may
    u32 call = kNone;
    u32 kernel = kNone;  // one that a change makes faster
    u32 waits = 0;
    u8 waits_count = 0;
    bool to_device = false, to_host = false;  // copies
    bool in_sequence = false;
    bool function = false;
  };

  void mend_order(const Tape& tape);
  bool join_threads(Tape& tape);
  void tie_operations(Tape& tape);
  void take_calls(Tape& tape);
  void find_sequences(const Tape& tape, const std::vector<TimelineCopies>& copies);
  std::vector<u32> by_call(std::vector<u32>& begins) const;
  void find_lags(const Tape& tape);
  void find_blocking(const Tape& tape, const std::vector<TimelineCopies>& copies);
  void find_copies(const Tape& tape, const std::vector<TimelineCopies>& copies);
  void find_kernels(const Tape& tape);
  void infer_functions(Tape& tape);
  Nanos end_of_waits(const Tape& tape, u32 waits, u32 count, Nanos until) const;
  bool is_small_result(const TapeOperation& operation, const std::vector<TimelineCopies>& copies) const;
  void find_waits(const Tape& tape, const std::vector<TimelineCopies>& copies);
  void find_implicit_waits(const Tape& tape);
  void block(u32 call, u32 waits, u32 count, const Tape& tape);
  template <typename Visit>
  void for_each_event(const Tape& tape, Visit&& visit) const;
  void order(const Tape& tape);
  Nanos begin_of(const Call& call, WhatIfs changes) const;
  Nanos end_of(const Call& call, Nanos begin, WhatIfs changes) const;
  Nanos end_with(Nanos end, const Call& call, Nanos wake) const;
  Nanos start_of(u32 index, WhatIfs changes);
  Nanos length_of(const Operation& operation, WhatIfs changes) const;
  void find_turns(const Tape& tape);
  void count_touched();

  const KernelChanges& kernels_;
  std::vector<Event> events_;
  std::vector<Call> calls_;
  std::vector<Operation> operations_;
  std::vector<u32> waits_;  // indices in operations_; kNone: of none
  // Of one replay: begins of calls; ends of operations, and of all that they stood behind; where each thread is.
  std::vector<Nanos> begins_, finishes_, behind_, threads_;
  std::array<u64, kWhatIfs> touched_{};
  u64 launches_ = 0, launches_repeated_ = 0;
  Nanos first_ = 0, last_ = 0;
  Nanos usual_wake_ = 0, usual_own_ = 0;
};

}  // namespace gputrace
