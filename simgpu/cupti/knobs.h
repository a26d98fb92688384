// SIMGPU_CUPTI and SIMGPU_CLOCK, read once. What cannot be parsed keeps its default.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "simgpu/driver/life/clock.h"

namespace simgpu::cupti {

// error=CALL:N:CODE
struct CallError {
  std::string call;
  uint64_t at = 0;  // from 1
  int code = 0;
  std::atomic<uint64_t> seen{0};

  CallError(std::string c, uint64_t n, int e) : call(std::move(c)), at(n), code(e) {}
};

// slow=CALL:TIME
struct SlowCall {
  std::string call;
  Nanos time = 0;
};

struct Knobs {
  bool off = false;
  bool busy = false;
  bool late = false;
  bool separate_api_ids = false;
  uint64_t drop_every = 0;  // 0: never
  uint64_t zero_every = 0;
  uint64_t device_buffer_bytes = 3'200'000;
  std::string layout;  // empty: the newest
  std::deque<CallError> errors;
  std::deque<SlowCall> slow;  // sleeps at its begin

  // The clock.
  bool monotonic = false;
  double skew = 0;  // 100 ppm = 1e-4
  Nanos jitter = 0;
  int64_t step = 0;
  Nanos step_at = 0;  // after the library's first use
  Nanos wrap = 0;     // 0: never
};

Knobs& knobs();

}  // namespace simgpu::cupti
