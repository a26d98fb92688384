#include "analysis/run/devices.h"

namespace gputrace {

DeviceMap::DeviceMap(const LoadedRun& run) {
  std::map<std::string, std::size_t> known;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const Device& device : process.devices) {
      const std::string identity = device.uuid.empty() ? std::to_string(device.ordinal) : device.uuid;
      const auto [it, fresh] = known.emplace(process.who.host + '\n' + identity, entries_.size());
      if (fresh) entries_.push_back({0, process.who.host, device});
      by_ordinal_[{p, device.ordinal}] = it->second;
    }
  }
  std::map<i32, std::size_t> claimed;
  bool ordinals_are_unique = true;
  for (const auto& [key, entry] : by_ordinal_) {
    const auto [it, fresh] = claimed.emplace(key.second, entry);
    ordinals_are_unique = ordinals_are_unique && (fresh || it->second == entry);
  }
  for (const auto& [key, entry] : by_ordinal_) {
    if (ordinals_are_unique) entries_[entry].number = key.second;
  }
  for (std::size_t i = 0; !ordinals_are_unique && i < entries_.size(); ++i) entries_[i].number = static_cast<i64>(i);
}

Value DeviceMap::number(std::size_t process, i32 ordinal) const {
  if (ordinal < 0) return {};
  const auto it = by_ordinal_.find({process, ordinal});
  return it == by_ordinal_.end() ? Value(static_cast<i64>(ordinal)) : Value(entries_[it->second].number);
}

const Device* DeviceMap::facts(const ProcessTrace& process, i32 ordinal) {
  for (const Device& device : process.devices) {
    if (device.ordinal == ordinal) return &device;
  }
  return nullptr;
}

std::vector<const Device*> devices_of_rows(const ProcessTrace& process) {
  constexpr i32 kNobody = -1, kSeveral = -2;
  std::vector<i32> ordinals(process.library.rows.size(), kNobody);
  for (const LibraryUse& use : process.library.uses) {
    if (use.row >= ordinals.size() || use.kernel >= process.kernels.size()) continue;
    const u32 context = process.kernels[use.kernel].shape.context;
    const i32 device = context < process.contexts.size() ? process.contexts[context].device : kSeveral;
    i32& ordinal = ordinals[use.row];
    ordinal = device < 0 || (ordinal != kNobody && ordinal != device) ? kSeveral : device;
  }
  std::vector<const Device*> devices;
  devices.reserve(ordinals.size());
  for (const i32 ordinal : ordinals) devices.push_back(ordinal < 0 ? nullptr : DeviceMap::facts(process, ordinal));
  return devices;
}

}  // namespace gputrace
