#include "simgpu/driver/life/clock.h"

#include <cerrno>

namespace simgpu {

namespace {
constexpr Nanos kSleepMargin = 80'000;  // what a sleep may overshoot; the rest is spun
}

void wait_until(Nanos until) {
  const int saved_errno = errno;
  Nanos now = now_ns();
  while (now + kSleepMargin < until) {
    const Nanos wake = until - kSleepMargin;
    timespec t{static_cast<time_t>(wake / 1'000'000'000u), static_cast<long>(wake % 1'000'000'000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
    now = now_ns();
  }
  spin_until(until);
  errno = saved_errno;
}

}  // namespace simgpu
