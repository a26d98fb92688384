#include "analysis/run/device_time.h"

#include <set>

#include "analysis/run/devices.h"

namespace gputrace {
namespace {

// What tracing itself causes. The driver's own work (compiling, loading, a full command buffer) is not.
bool of_collection(u32 kind) {
  switch (static_cast<OverheadKind>(kind)) {
    case OverheadKind::BufferFlush:
    case OverheadKind::Instrumentation:
    case OverheadKind::Resource:
    case OverheadKind::BufferRequest:
    case OverheadKind::OwnThread:
    case OverheadKind::OwnSetup:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool device_collected(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    if (process.device.collected) return true;
  }
  return false;
}

std::string why_no_device_times(const LoadedRun& run) {
  bool any = false;
  for (const ProcessTrace& process : run.processes) {
    if (process.device.collected) {
      any = true;
      continue;
    }
    if (!process.window.empty() && process.end == 0) return "no call was made in the window that was recorded";
    for (auto state = process.device.states.rbegin(); state != process.device.states.rend(); ++state) {
      const bool is_why = state->state != DeviceCollection::Ended;  // that is how it should be
      if (is_why && !state->reason.empty()) return state->reason;
    }
    for (const auto& [what, why] : process.not_collected) {
      if (what == "device" && !why.empty()) return why;
    }
  }
  return any ? "" : "device timing was not collected";
}

std::string why_no_environment(const LoadedRun& run) {
  std::string why = "CUPTI told of none";
  for (const ProcessTrace& process : run.processes) {
    if (!process.device.environment.empty()) return "";
    for (const auto& [what, reason] : process.not_collected) {
      if (what == "environment") why = reason;
    }
  }
  return device_collected(run) ? why : "needs device timing: " + why_no_device_times(run);
}

DeviceTotals device_totals(const LoadedRun& run) {
  DeviceTotals totals;
  const DeviceMap devices(run);
  std::set<std::string> seen;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const DeviceTimes& times : process.device.devices) {
      if (times.span_ns() == 0) continue;
      ++totals.devices;
      totals.span_ns += times.span_ns();
      totals.busy_ns += times.busy_ns;
      totals.idle_ns += times.idle_ns;
      totals.unknown_ns += times.unknown_ns;
      totals.compute_ns += times.compute_ns;
      totals.collective_ns += times.collective_ns;
      totals.copy_ns += times.copy_ns;
      totals.exposed_collective_ns += times.exposed_collective_ns;
      totals.exposed_copy_ns += times.exposed_copy_ns;
      totals.launch_idle_ns += times.causes[static_cast<unsigned>(IdleCause::Launch)].total_ns;
      const Device* facts = DeviceMap::facts(process, times.device);
      const std::string identity =
          process.who.host + '\n' +
          (facts && !facts->uuid.empty() ? facts->uuid : std::to_string(p) + '/' + std::to_string(times.device));
      totals.shared_device = !seen.insert(identity).second || totals.shared_device;
    }
    totals.operations += process.device.join.operations;
    totals.untold += process.device.join.untold;
    for (const KernelLaunches& group : process.kernels) {
      totals.kernel_ns += group.times.durations.sum();
      totals.kernels += group.times.durations.count();
    }
    for (const DeviceEnvironmentTimes& each : process.device.environment)
      totals.clocked_ns += each.clocked_ns, totals.held_down_ns += each.held_down_ns;
    constexpr u64 kOverheadKind = 1ull << 17;
    totals.overhead_known =
        totals.overhead_known || (process.device.kinds & kOverheadKind) || !process.device.overhead.empty();
    totals.overhead_ns += process.device.own_work_ns;
    for (const DeviceOverheadSum& sum : process.device.overhead) {
      if (of_collection(sum.kind)) totals.overhead_ns += sum.total_ns;
    }
  }
  return totals;
}

std::optional<double> ratio(u64 part, u64 whole) {
  if (whole == 0) return {};
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace gputrace
