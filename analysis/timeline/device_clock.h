// CUPTI's clock to CLOCK_MONOTONIC, from readings of the one between two readings of the other (DeviceClock records).
//   · A reading becomes a knot: (device time, host time), the host time where the line so far predicts it, moved into
//     the window between our two stamps if it lies outside. So a clock that runs as ours does is shifted by a constant,
//     and lengths are kept to the nanosecond; one that drifts is followed piecewise. Until the first time is asked for,
//     the constant is moved to where all readings allow it.
//   · A jump forward between two knots is told by a rate that no oscillator has: it is counted, and times between the
//     two knots have the jump in their bound. A smaller one looks like another rate until the next reading that is far
//     enough away to tell: which of the two rates that one fits decides, and until then, or where none comes, the bound
//     has it.
//   · A clock that goes back (restart) begins a new epoch; a device time that fits several epochs is taken from the
//     newest one that had begun when the record was handled.
//   · Another client's clock in place of CUPTI's begins an epoch of its own, whose unit is what its readings say: until
//     the second one nothing is known of its times.
//   · Knots come in the order of the host's time; times are asked for after the knot that follows them was added, else
//     they are extrapolated. Memory: 40 bytes a knot.
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"

namespace gputrace {

class DeviceTimeline {
 public:
  // The clock was `device` at some moment of [before, after] (host ns; their own error included). `likely`: what the
  // host's clock was then if CUPTI's clock is one that the host has too; 0: not known.
  // `foreign`: it is another client's, in a unit of its own.
  void add(u64 device, Nanos before, Nanos after, Nanos likely = 0, bool foreign = false);

  bool known() const { return !knots_.empty(); }
  // `handled`: host time at which the record was there already.
  Nanos nanos(u64 device, Nanos handled) {
    if (device - even_.from >= even_.length) return look_up(device, handled);
    here_ = even_.error, jumped_here_ = false, sure_here_ = true;
    return even_.host + static_cast<Nanos>(device - even_.from);
  }
  // A length on the host's clock: never negative.
  Nanos length(u64 start, u64 finish) const {
    if (finish <= start) return 0;
    return even_.steady ? static_cast<Nanos>(finish - start) : scaled_length(finish - start);
  }

  u64 readings() const { return readings_; }
  u64 steps() const { return steps_; }
  u64 restarts() const { return restarts_; }
  Nanos largest_step() const { return largest_step_; }
  // Outside of steps: |nanos(t) − true| is at most this if the rate is steady between two readings; −1: no readings.
  Nanos error() const { return !known() ? -1 : doubted_ ? std::max(worst_, doubt_) : worst_; }
  // As error(), for one time, steps included. After nanos() of the same time.
  Nanos error_here() const { return here_; }
  // Whether the clock jumped between the readings around that time, or may have. After nanos() of the same time.
  bool jumped_here() const { return jumped_here_; }
  // Whether the unit of that clock is known. After nanos() of the same time.
  bool sure_here() const { return sure_here_; }
  u64 newest() const { return knots_.empty() ? 0 : knots_.back().device; }

 private:
  struct Knot {
    u64 device = 0;
    Nanos host = 0;
    Nanos error = 0;     // of this knot
    Nanos step = 0;      // jump between this knot and the one before it, or what may be one
    double rate = 1;     // host ns per device ns from here on, until the next knot says better; 0: not known
    bool epoch = false;  // the first of an epoch
  };

  // Between the two knots of the newest answer where the clock runs as ours does, and did not jump. Length 0: not there.
  struct Even {
    u64 from = 0, length = 0;
    Nanos host = 0, error = 0;
    bool steady = false;  // and will, as far as is known
  };

  Nanos scaled_length(u64 length) const;
  Nanos look_up(u64 device, Nanos handled);
  std::size_t find(u64 device, Nanos handled) const;
  Nanos at(std::size_t knot, u64 device);
  void follow(u64 device, Nanos before, Nanos after);
  void keep(const Knot& made);
  void shift_into(u64 device, Nanos before, Nanos after);
  void settle_doubt(u64 device, Nanos before, Nanos after);
  void begin_epoch(u64 device, Nanos before, Nanos after);
  bool learns_unit() const;
  void learn_unit(u64 device, Nanos before, Nanos after);

  std::vector<Knot> knots_;
  Even even_;
  std::size_t hint_ = 0, epoch_ = 0;  // the knot that was used last, the first of the newest epoch
  double rate_ = 1;
  double unit_ = 1;  // host ns per device ns but for drift; 0: not known
  bool foreign_ = false, sure_here_ = true, jumped_here_ = false;
  bool shiftable_ = false;  // no time was asked for, and one constant fits all readings: it lies between these
  Nanos least_shift_ = 0, most_shift_ = 0;
  u64 readings_ = 0, steps_ = 0, restarts_ = 0;
  Nanos largest_step_ = 0, worst_ = 0, here_ = 0;
  std::size_t doubted_ = 0;  // the knot before which the rate changed or the clock jumped; 0: none
  Nanos doubt_ = 0;          // by how much it jumped, if it did
  double rate_before_ = 1;
};

}  // namespace gputrace
