// CUPTI's clock as SIMGPU_CLOCK bends it, from the truth's (CLOCK_MONOTONIC, ns).
//   exact      CLOCK_REALTIME, by one difference that is taken once per process
//   monotonic  the truth's own
//   skew       gains that share of the time since the library's first use
//   step       is that much further from that moment on
//   wrap       starts again at the first use's value whenever that much time has passed
//   jitter     record stamps are off by up to that much, each way; the clock itself is not
// Before the first use (records cannot be from then, but a program may have begun a call) the clock is not bent.
#pragma once

#include <cstdint>

#include "simgpu/driver/life/clock.h"

namespace simgpu::cupti {

// CUPTI's time for a moment of the truth.
uint64_t device_time(Nanos host);
uint64_t device_now();
// The same for a stamp of record number `record`; which: 0 for the first stamp of the record, 1 for the second …
uint64_t device_stamp(Nanos host, uint64_t record, unsigned which);

}  // namespace simgpu::cupti
