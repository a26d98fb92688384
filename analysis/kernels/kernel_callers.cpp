#include "analysis/kernels/kernel_callers.h"

#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/devices.h"

namespace gputrace {

void KernelCallers::add(const KernelCallers& other) {
  operations.add(other.operations);
  sites.add(other.sites);
  replayed_operations.add(other.replayed_operations);
  replayed_sites.add(other.replayed_sites);
}

std::vector<KernelCallers> kernel_callers(const ProcessTrace& process, const FileNames& names) {
  std::vector<KernelCallers> callers(process.kernels.size());
  OriginSites sites(process.lines, names);
  for (const KernelOrigin& pair : process.lines.kernels) {
    callers[pair.kernel].operations.add(operation_of_origin(process.lines, pair.origin), pair.device_ns);
    callers[pair.kernel].sites.add(sites.of(pair.origin), pair.device_ns);
  }
  for (const KernelOrigin& pair : process.lines.replayed) {
    callers[pair.kernel].replayed_operations.add(operation_of_origin(process.lines, pair.origin), pair.executions);
    callers[pair.kernel].replayed_sites.add(sites.of(pair.origin), pair.executions);
  }
  for (u32 kernel = 0; kernel < callers.size(); ++kernel) {  // the others were launched from no line and no operation
    const u64 all = process.kernels[kernel].times.durations.sum();
    callers[kernel].operations.complete(all);
    callers[kernel].sites.complete(all);
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
