// What products are multiplied in, and how fast.
#pragma once

#include "simgpu/libs/common/launch.h"

namespace simlibs {

enum class Math { F32, Tf32, F16, Bf16, F64, S8, F8, C32, C64 };

// How long the current device is at it, ns: 70 % of its peak in that arithmetic, and 2 us to begin and end.
inline unsigned long long time_of(Math math, double flops) {
  const int device = capability();
  const auto per_clock = [&](double ampere, double hopper, double blackwell) {
    return device == 100 ? blackwell : device == 90 ? hopper : ampere;
  };
  double rate = 256;  // operations that a multiprocessor does in a clock
  switch (math) {
    case Math::Tf32:
      rate = per_clock(1024, 2048, 4096);
      break;
    case Math::F16:
    case Math::Bf16:
      rate = per_clock(2048, 4096, 8192);
      break;
    case Math::S8:
    case Math::F8:
      rate = per_clock(4096, 8192, 16384);
      break;
    case Math::F64:
      rate = per_clock(128, 256, 128);
      break;
    case Math::C64:
      rate = per_clock(64, 128, 128);
      break;
    default:
      break;
  }
  const double per_ns = rate * multiprocessors() * device_facts().clock_ghz * 0.7;
  return per_ns > 0 ? 2000 + static_cast<unsigned long long>(flops / per_ns) : 0;
}

}  // namespace simlibs
