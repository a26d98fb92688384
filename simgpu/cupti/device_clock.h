// CUPTI's clock as SIMGPU_CLOCK bends it, from the truth's (CLOCK_MONOTONIC, ns).
//   exact      CLOCK_REALTIME, by one difference that is taken once per process
//   monotonic  the truth's own
//   skew       gains that share of the time since the library's first use
//   step       is that much further from that moment on
//   wrap       starts again at the first use's value whenever that much time has passed
//   jitter     record stamps are off by up to that much, each way; the clock itself is not
// A client's own clock (cuptiActivityRegisterTimestampCallback) takes the place of all but jitter: it is read beside the truth's again and
// again, and a moment between two readings is interpolated, so that a clock in any unit (Kineto's are TSC ticks) comes out to the nanosecond
// as long as it runs evenly.
// Before the first use (records cannot be from then, but a program may have begun a call) the clock is not bent.
#pragma once

#include <cstdint>

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/life/clock.h"

namespace simgpu::cupti {

// CUPTI's time for a moment of the truth.
uint64_t device_time(Nanos host);
uint64_t device_now();
// A moment of the truth as record number `record` has it; which: 0 for the first stamp of the record, 1 for the second …
Nanos jittered(Nanos host, uint64_t record, unsigned which);

// The client's clock from now on; null: ours again.
void set_client_clock(CUpti_TimestampCallbackFunc clock);
// Reads it once more: before moments up to now are converted.
void read_client_clock();

}  // namespace simgpu::cupti
