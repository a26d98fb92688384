// Host time, in nanoseconds of CLOCK_MONOTONIC: the one clock of the model, of the truth file and of every stamp.
#pragma once

#include <time.h>

#include <cstdint>

namespace simgpu {

using Nanos = uint64_t;

inline Nanos now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000u + static_cast<Nanos>(t.tv_nsec);
}

// Returns at `until` or a little after: sleeps while that is far away, spins for the rest.
void wait_until(Nanos until);

// Burns processor time until `until`.
inline void spin_until(Nanos until) {
  while (now_ns() < until) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace simgpu
