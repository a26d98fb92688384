// Memory of each device over all processes that used it.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/run/devices.h"

namespace gputrace {

struct DeviceMemoryTotal {
  Value device;
  std::vector<MemorySample> samples;  // allocated bytes after each change
  u64 peak_bytes = 0;
  Nanos peak_at = 0;
  std::vector<PeakPart> at_peak;  // where several processes shared the device: the parts of each process's own peak
  bool thinned = false;  // samples are the largest of intervals; with several processes the peak is then within those
  std::size_t processes = 0;
};

std::vector<DeviceMemoryTotal> device_memory(const LoadedRun& run);

}  // namespace gputrace
