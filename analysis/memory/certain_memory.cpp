#include "analysis/memory/certain_memory.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "analysis/facts/kind_names.h"

namespace gputrace {
namespace {

// A level that only rises and falls by what is certain.
struct Level {
  u64 now = 0, peak = 0;
  void add(u64 bytes, bool stays) {
    peak = std::max(peak, now + bytes);
    if (stays) now += bytes;
  }
};

}  // namespace

void CertainMemory::add(const Change& change) {
  if (!active_) return;
  if (changes_.size() == kMost) lost(std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max());
  if (changes_.size() < kMost) changes_.push_back(change);
}

void CertainMemory::finish(std::vector<MemoryPool>& pools, std::vector<DeviceMemory>& devices) {
  if (!active_) return;
  std::sort(lost_.begin(), lost_.end(), [](const Loss& a, const Loss& b) { return a.begin < b.begin; });
  std::vector<Level> of_pools(pools.size());
  std::unordered_map<i32, Level> of_devices;
  std::unordered_map<u64, Change> certain;
  std::size_t next = 0;
  Nanos missing_until = std::numeric_limits<Nanos>::min();
  const auto come_to = [&](Nanos at) {
    for (; next < lost_.size() && lost_[next].begin <= at; ++next) {
      certain.clear();
      for (Level& level : of_pools) level.now = 0;
      for (auto& [device, level] : of_devices) level.now = 0;
      missing_until = std::max(missing_until, lost_[next].end);
    }
  };
  for (const Change& change : changes_) {
    come_to(change.at);
    if (change.pool == kNone) {
      const auto known = certain.find(change.id);
      if (known == certain.end()) continue;
      const Change& was = known->second;
      of_pools[was.pool].now -= was.bytes;
      if (on_device(pools[was.pool].kind)) of_devices[pools[was.pool].device].now -= was.bytes;
      certain.erase(known);
      continue;
    }
    const bool stays = change.at > missing_until;
    of_pools[change.pool].add(change.bytes, stays);
    if (on_device(pools[change.pool].kind)) of_devices[pools[change.pool].device].add(change.bytes, stays);
    if (stays) certain.emplace(change.id, change);
  }
  come_to(std::numeric_limits<Nanos>::max());
  for (std::size_t i = 0; i < pools.size(); ++i)
    pools[i].certain_peak_bytes = of_pools[i].peak, pools[i].certain_live_bytes = of_pools[i].now;
  for (DeviceMemory& device : devices) {
    device.certain_peak_bytes = of_devices[device.device].peak;
    device.certain_live_bytes = of_devices[device.device].now;
  }
}

}  // namespace gputrace
