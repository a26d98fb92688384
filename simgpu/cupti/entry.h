// What every exported function does before its body.
#pragma once

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/observe/observer.h"

namespace simgpu::cupti {

// Needs nothing; needs a loaded driver (cuInit may come later).
enum class Wants { nothing, driver };

// CUPTI_SUCCESS: go on. Counts the call for error=, judges off, a forked child, an absent driver.
CUptiResult enter(const char* name, Wants wants);
// Remembers a failure for cuptiGetLastError, and counts what is not modelled.
CUptiResult leave(const char* name, CUptiResult result);
CUptiResult take_last_error();

// The driver's side; null until a function that wants it has found it.
const DriverSide* driver();

}  // namespace simgpu::cupti

#define CUPTI_SIM(exported, wants, params, args)                                                         \
  static CUptiResult body_##exported params;                                                             \
  extern "C" __attribute__((visibility("default"))) CUptiResult CUPTIAPI exported params {               \
    const CUptiResult refused = ::simgpu::cupti::enter(#exported, ::simgpu::cupti::Wants::wants);        \
    return ::simgpu::cupti::leave(#exported, refused != CUPTI_SUCCESS ? refused : body_##exported args); \
  }                                                                                                      \
  static CUptiResult body_##exported params
