// What a management library may ask of the simulated machine without initializing the driver: a program may fork after it.
// The simulation's stand-in of NVML finds `simgpu_machine` in the loaded driver.
#pragma once

#include <cstdint>

namespace simgpu {

struct Machine {
  int devices;
  int sms;
  int cc_major, cc_minor;
  int driver;  // as cuDriverGetVersion
  uint64_t memory_bytes;
  const char* name;
  void (*uuid)(int ordinal, unsigned char (*out)[16]);
  uint64_t (*free_bytes)(int ordinal);  // as this process sees it
};

}  // namespace simgpu

extern "C" const simgpu::Machine* simgpu_machine();
