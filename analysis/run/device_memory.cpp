#include "analysis/run/device_memory.h"

#include <algorithm>
#include <map>

namespace gputrace {
namespace {

// The sum of step functions, and its largest value.
void add_up(const std::vector<const DeviceMemory*>& parts, DeviceMemoryTotal& total) {
  struct Step {
    Nanos at;
    std::size_t part;
    u64 bytes;
  };
  std::vector<Step> steps;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const MemorySample& sample : parts[i]->samples) steps.push_back({sample.at, i, sample.bytes});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
  std::vector<u64> now(parts.size(), 0);
  u64 sum = 0;
  for (const Step& step : steps) {
    sum = sum - now[step.part] + step.bytes;
    now[step.part] = step.bytes;
    total.samples.push_back({step.at, sum});
    if (sum > total.peak_bytes) {
      total.peak_bytes = sum;
      total.peak_at = step.at;
    }
  }
}

}  // namespace

std::vector<DeviceMemoryTotal> device_memory(const LoadedRun& run) {
  const DeviceMap devices(run);
  std::map<i64, std::vector<const DeviceMemory*>> by_device;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    for (const DeviceMemory& memory : run.processes[p].device_memory) {
      const Value number = devices.number(p, memory.device);
      by_device[is_null(number) ? -1 : std::get<i64>(number)].push_back(&memory);
    }
  }
  std::vector<DeviceMemoryTotal> totals;
  for (const auto& [number, parts] : by_device) {
    DeviceMemoryTotal& total = totals.emplace_back();
    if (number >= 0) total.device = number;
    total.processes = parts.size();
    for (const DeviceMemory* part : parts) {
      total.thinned = total.thinned || part->thinned;
      total.at_peak.insert(total.at_peak.end(), part->at_peak.begin(), part->at_peak.end());
    }
    if (parts.size() == 1) {
      total.samples = parts[0]->samples;
      total.peak_bytes = parts[0]->peak_bytes;
      total.peak_at = parts[0]->peak_at;
    } else {
      add_up(parts, total);
    }
  }
  return totals;
}

}  // namespace gputrace
