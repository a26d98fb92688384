// The unions of one device's operations, taken in the order of their starts: busy and idle time, and what of copies and
// collectives no kernel covered. O(1) an operation, no memory but the newest end of each class.
//
//   compute     ████████      ████                   compute + exposed collective + exposed copy + idle = span
//   collective       ▒▒▒████                         busy + idle = span
//   copy          ░░░░░░░░░░░░░░████     ██          (filled: counted; light: covered by a class above)
//
// An operation that starts before the newest start was given too late: the part of it that lies before is not counted.
#pragma once

#include <algorithm>

#include "analysis/facts/device_facts.h"
#include "base/types.h"

namespace gputrace {

enum class DeviceClass : u8 { Compute, Collective, Copy };
inline constexpr unsigned kDeviceClasses = 3;

class DeviceSweep {
 public:
  // How long the device had nothing to do before `start`: from end() to `start`; 0 also for the first operation.
  Nanos idle_before(Nanos start) const { return begun_ && start > end() ? start - end() : 0; }
  bool begun() const { return begun_; }
  // Largest end so far.
  Nanos end() const { return end_; }
  Nanos now() const { return now_; }

  // False: it came late.
  bool add(DeviceTimes& times, DeviceClass what, Nanos start, Nanos end) {
    if (!begun_) {
      begun_ = true;
      times.first = now_ = start;
      std::fill(std::begin(until_), std::end(until_), start);
      end_ = start;
    }
    const bool in_time = start >= now_;
    if (in_time) advance(times, start);
    Nanos& until = until_[static_cast<unsigned>(what)];
    until = std::max(until, end);
    end_ = std::max(end_, end);
    times.last = std::max(times.last, end);
    return in_time;
  }

  void finish(DeviceTimes& times) {
    if (begun_) advance(times, end_);
  }

 private:
  // From now_ to `to` nothing began: each class is active up to until_ and not after.
  void advance(DeviceTimes& times, Nanos to) {
    Nanos covered = std::max(now_, std::min(until_[0], to));
    times.compute_ns += static_cast<u64>(covered - now_);
    if (until_[1] > now_ || until_[2] > now_) covered = add_others(times, covered, to);
    times.busy_ns += static_cast<u64>(covered - now_);
    times.idle_ns += static_cast<u64>(to - covered);
    now_ = to;
  }

  // What is not compute. Until when something covers the time then.
  Nanos add_others(DeviceTimes& times, Nanos covered, Nanos to) const {
    u64* const exposed[kDeviceClasses] = {nullptr, &times.exposed_collective_ns, &times.exposed_copy_ns};
    u64* const whole[kDeviceClasses] = {nullptr, &times.collective_ns, &times.copy_ns};
    for (unsigned i = 1; i < kDeviceClasses; ++i) {
      const Nanos until = std::min(until_[i], to);
      if (until > covered) {
        *exposed[i] += static_cast<u64>(until - covered);
        covered = until;
      }
      if (until > now_) *whole[i] += static_cast<u64>(until - now_);
    }
    return covered;
  }

  bool begun_ = false;
  Nanos now_ = 0, end_ = 0;
  Nanos until_[kDeviceClasses] = {};
};

}  // namespace gputrace
