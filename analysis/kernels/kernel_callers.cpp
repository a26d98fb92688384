#include "analysis/kernels/kernel_callers.h"

#include <algorithm>

#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/devices.h"

namespace gputrace {

void KernelCallers::add(const KernelCallers& other) {
  for (const auto& [name, nanos] : other.operations) operations[name] += nanos;
  for (const auto& [name, nanos] : other.sites) sites[name] += nanos;
  for (const auto& [name, executions] : other.replayed_operations) replayed_operations[name] += executions;
  for (const auto& [name, executions] : other.replayed_sites) replayed_sites[name] += executions;
}

std::string KernelCallers::most(const std::map<std::string, u64>& by_name) {
  const auto largest = std::max_element(by_name.begin(), by_name.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == by_name.end() ? "" : largest->first;
}

std::vector<KernelCallers> kernel_callers(const ProcessTrace& process, const FileNames& names) {
  std::vector<KernelCallers> callers(process.kernels.size());
  for (const KernelOrigin& pair : process.lines.kernels) {
    const std::string operation = operation_of_origin(process.lines, pair.origin);
    const std::string site = site_of_origin(process.lines, pair.origin, names);
    if (!operation.empty()) callers[pair.kernel].operations[operation] += pair.device_ns;
    if (!site.empty()) callers[pair.kernel].sites[site] += pair.device_ns;
  }
  for (const KernelOrigin& pair : process.lines.replayed) {
    const std::string operation = operation_of_origin(process.lines, pair.origin);
    const std::string site = site_of_origin(process.lines, pair.origin, names);
    if (!operation.empty()) callers[pair.kernel].replayed_operations[operation] += pair.executions;
    if (!site.empty()) callers[pair.kernel].replayed_sites[site] += pair.executions;
  }
  return callers;
}

void TensorCoreShare::add(const TensorCoreShare& more) {
  kernel_ns += more.kernel_ns, tensor_core_ns += more.tensor_core_ns, not_known_ns += more.not_known_ns;
}

Value TensorCoreShare::ratio() const {
  if (kernel_ns == 0 || not_known_ns > kernel_ns / 100) return {};
  return static_cast<double>(tensor_core_ns) / static_cast<double>(kernel_ns);
}

std::vector<TensorCoreShare> tensor_core_shares(const ProcessTrace& process) {
  std::vector<TensorCoreShare> shares;
  std::vector<std::optional<TensorCoreVerdict>> verdicts(process.kernels.size());
  for (const KernelOrigin& pair : process.lines.kernels) {
    auto& verdict = verdicts[pair.kernel];
    if (!verdict) {
      const u32 context = process.kernels[pair.kernel].shape.context;
      const i32 device = context == kNone ? -1 : process.contexts[context].device;
      verdict = tensor_core_verdict(process, pair.kernel, DeviceMap::facts(process, device));
    }
    TensorCoreShare& share = entry_at(shares, pair.origin);
    share.kernel_ns += pair.device_ns;
    if (!verdict->used)
      share.not_known_ns += pair.device_ns;
    else if (*verdict->used)
      share.tensor_core_ns += pair.device_ns;
  }
  return shares;
}

}  // namespace gputrace
