// The record clock: the TSC where it is invariant, else CLOCK_MONOTONIC.
//   · now_ticks() is on the hot path of every intercepted call: no system call, no lock.
//   · Ticks are turned into nanoseconds by the reader alone, from the anchors that the sidecar writes all through the
//     run.
#pragma once

#include <time.h>

#include "base/types.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace gputrace {

enum class ClockKind : u32 { Tsc = 1, Monotonic = 2 };

inline Nanos clock_nanos(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
inline Nanos monotonic_nanos() { return clock_nanos(CLOCK_MONOTONIC); }
inline Nanos realtime_nanos() { return clock_nanos(CLOCK_REALTIME); }

// The TSC may serve as a clock only if it neither stops nor changes its rate (CPUID 8000_0007H, EDX bit 8: invariant
// TSC).
inline ClockKind detect_clock() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8))) return ClockKind::Tsc;
#endif
  return ClockKind::Monotonic;
}

inline Ticks ticks_of(ClockKind kind) {
#if defined(__x86_64__)
  if (kind == ClockKind::Tsc) [[likely]]
    return __rdtsc();
#endif
  (void)kind;
  return static_cast<Ticks>(monotonic_nanos());
}

// One reading of all clocks at (nearly) one instant.
struct Anchor {
  Ticks ticks = 0;
  Nanos monotonic_ns = 0;
  Nanos realtime_ns = 0;
  Nanos width_ns = 0;  // the monotonic reading is within ± width_ns / 2 of the instant of `ticks`
};

// Takes the narrowest of `tries` readings. Any thread; ~100 ns a try.
inline Anchor take_anchor(ClockKind kind, int tries = 8) {
  Anchor best;
  for (int i = 0; i < tries; ++i) {
    const Nanos before = monotonic_nanos();
    const Ticks ticks = ticks_of(kind);
    const Nanos after = monotonic_nanos();
    if (i == 0 || after - before < best.width_ns) best = {ticks, before + (after - before) / 2, 0, after - before};
  }
  best.realtime_ns = realtime_nanos() - (monotonic_nanos() - best.monotonic_ns);
  return best;
}

}  // namespace gputrace
