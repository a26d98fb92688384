// Why a device was idle: a gap is divided among what the launching thread did in it and what the device waited for, instant
// by instant. Pure; what cannot be told is Unknown.
//
//      previous operation │ gap                                                     │ next operation
//   ──────────────────────┤G                                                       S├──────────────
//     launching thread:  ▒▒sync▒▒│ host │▒▒alloc▒▒│ host │▒▒▒launch▒▒▒│   R: the launch of the next operation returned
//     next waits for:                                                 ░░░░░░░░│       P: what it had to wait for ended
//                        └─ what the thread did ────────────────────┘└ other ┘└ dispatch
//
//   Up to R: the call that the thread was in (waits, copies, allocations, loading, libraries, launches), else host; what
//   CUPTI reports as overhead of that thread, or of an untold thread while it was in a CUDA call, is taken from the part in
//   which it lies: tracing, and the driver's loading, compiling and full command buffer.
//   From R to P: another stream or device. From then on: dispatch, the device's own way; or a host function or a value in
//   memory where the next operation stands behind one: their ends are not measured, so that is all but the usual dispatch.
//   A gap that is shorter than the error between the two clocks has host parts only if the launch returned that long
//   before it, for then it has none: what lies closer is Unknown.
#pragma once

#include <vector>

#include "analysis/gaps/host_log.h"
#include "analysis/gaps/operations.h"

namespace gputrace {

// What a gap consists of. Reused from gap to gap: one instance, no allocation once it has grown.
class GapDivision {
 public:
  struct Piece {
    IdleCause cause = IdleCause::Unknown;
    u16 call = 0;  // the call that it lay in; 0: none
    Nanos length = 0;
  };

  void clear() {
    parts_.fill(0);
    between_launches_ = 0;
    longest_pause_ = {};
    pieces_.clear();
    in_order_.clear();
  }
  void add(IdleCause cause, Nanos length, u16 call) {
    if (length <= 0) return;
    in_order_.push_back({cause, call, length});
    parts_[static_cast<unsigned>(cause)] += length;
    for (Piece& piece : pieces_) {
      if (piece.cause != cause || piece.call != call) continue;
      piece.length += length;
      return;
    }
    pieces_.push_back({cause, call, length});
  }

  // `length` of Host lies in a pause of at most kLaunchPause between two launches of the thread.
  void add_between_launches(Nanos length) { between_launches_ += length; }
  Nanos between_launches() const { return between_launches_; }

  void add_pause(const HostPause& pause) {
    if (pause.length > longest_pause_.length) longest_pause_ = pause;
  }
  const HostPause& longest_pause() const { return longest_pause_; }

  const IdleParts& parts() const { return parts_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // From the gap's begin to its end, one after the other; what was overhead within one thing stands before its rest.
  const std::vector<Piece>& in_order() const { return in_order_; }
  Nanos of(IdleCause cause) const { return parts_[static_cast<unsigned>(cause)]; }
  // The call with most of the largest part that the launching thread is to blame for; 0: it was in none.
  u16 call_to_blame() const;

 private:
  IdleParts parts_{};
  Nanos between_launches_ = 0;
  HostPause longest_pause_;
  std::vector<Piece> pieces_, in_order_;
};

// The parts of a gap sum to its length. `usual_dispatch`: of operations of the next one's kind.
void divide_gap(const GapContext& context, const HostLog& log, Nanos usual_dispatch, GapDivision& division);

}  // namespace gputrace
