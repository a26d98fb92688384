// Clocks, power, temperature and cooling of a device, as CUPTI sampled them.
#pragma once

#include <algorithm>
#include <array>

#include "base/types.h"

namespace gputrace {

struct SampledQuantity {
  u64 count = 0, sum = 0;
  u32 min = 0, max = 0;
  u32 limit = 0;  // newest that was told; 0: none

  void add(u32 value) {
    min = count ? std::min(min, value) : value;
    max = std::max(max, value);
    sum += value;
    ++count;
  }
  double mean() const { return count ? static_cast<double>(sum) / static_cast<double>(count) : 0; }
};

// CUpti_EnvironmentClocksThrottleReason, by bit.
enum class ClockLimit : u8 { Idle, UserDefined, PowerCap, Slowdown, Unknown };
inline constexpr unsigned kClockLimits = 5;

struct DeviceEnvironmentTimes {
  i32 device = -1;
  SampledQuantity sm_clock, memory_clock;  // MHz
  SampledQuantity temperature;             // C
  SampledQuantity power;                   // mW
  SampledQuantity fan;                     // %
  // A speed sample holds until the next one of the device.
  u64 clocked_ns = 0;                          // between the first and the last speed sample that told the reasons
  std::array<u64, kClockLimits> limited_ns{};  // of it: with that reason; several may hold at once
  u64 held_down_ns = 0;                        // of it: with power cap, slowdown or an unknown reason
  Nanos newest = 0;                            // host time of the newest speed sample; 0: none
  u32 newest_reasons = 0;

  void speed(Nanos at, u32 sm_mhz, u32 memory_mhz, u32 reasons) {
    constexpr u32 kUnsupported = 0x40000000;
    sm_clock.add(sm_mhz);
    memory_clock.add(memory_mhz);
    if (newest != 0 && at > newest && !(newest_reasons & kUnsupported)) {
      constexpr u32 kBits[kClockLimits] = {1, 2, 4, 8, 0x80000000};
      const u64 held = static_cast<u64>(at - newest);
      clocked_ns += held;
      for (unsigned i = 0; i < kClockLimits; ++i) limited_ns[i] += newest_reasons & kBits[i] ? held : 0;
      held_down_ns += newest_reasons & (kBits[2] | kBits[3] | kBits[4]) ? held : 0;
    }
    newest = std::max(newest, at);
    newest_reasons = reasons;
  }
};

}  // namespace gputrace
