#include "analysis/kernels/kernel_rows.h"

#include <cstdio>
#include <map>

#include "analysis/names/demangle.h"

namespace gputrace {

std::string image_key(const ProcessTrace& process, u32 module) {
  if (module == kNone) return "";
  const ModuleInstance& instance = process.modules[module];
  if (instance.hash) return "hash " + std::to_string(instance.hash);
  if (instance.bytes)
    return "size " + std::to_string(instance.bytes) + " " + std::to_string(static_cast<u32>(instance.image));
  return "process " + std::to_string(process.who.pid) + " module " + std::to_string(module);
}

Value symbol_of(const Function& function) { return text_or_null(function.symbol); }

std::string display_name(const Function& function) {
  if (!function.symbol.empty()) return demangle(function.symbol);
  char text[48];
  std::snprintf(text, sizeof text, "(function 0x%llx)", static_cast<unsigned long long>(function.handle));
  return text;
}

const KernelName& name_of(const Function& function) {
  static std::map<std::string, KernelName> known;  // the analyzer has one thread
  const std::string key = function.symbol.empty() ? display_name(function) : function.symbol;
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, parse_kernel_name(key)).first->second;
}

KernelEvidence evidence_of(const Function& function) {
  return {function.caller, uses_tensor_cores(code_on(function, nullptr)).value_or(false)};
}

u64 kernel_time(const ProcessTrace& process) {
  u64 nanos = 0;
  for (const KernelLaunches& group : process.kernels) nanos += group.times.durations.sum();
  return nanos;
}

Residency residency_of(const Device* device, const Function& function, const KernelShape& shape) {
  if (!device) return {};
  const auto threads = static_cast<u64>(shape.block[0]) * shape.block[1] * shape.block[2];
  const KernelDemand demand{threads, function.registers, function.static_shared, shape.dynamic_shared};
  Residency residency;
  residency.occupancy = theoretical_occupancy(device->limits, demand);
  const bool clusters = shape.cluster[0] > 1 || shape.cluster[1] > 1 || shape.cluster[2] > 1;
  if (!residency.occupancy || clusters) return residency;
  const auto blocks = static_cast<u64>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  residency.waves = waves_of(blocks, residency.occupancy->blocks_per_sm, device->sms);
  return residency;
}

}  // namespace gputrace
