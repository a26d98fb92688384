#include "analysis/run/one_device.h"

#include <algorithm>

#include "analysis/run/devices.h"

namespace gputrace {
namespace {

template <typename Items, typename Other>
void take_out(Items& items, Other&& other) {
  items.erase(std::remove_if(items.begin(), items.end(), other), items.end());
}

// Others refer to kernels by their place: those of other devices stay, with nothing in them.
void keep_kernels(ProcessTrace& process, i32 ordinal) {
  process.plain_launches = 0;
  for (KernelLaunches& kernel : process.kernels) {
    const u32 context = kernel.shape.context;
    const i32 device = context < process.contexts.size() ? process.contexts[context].device : -1;
    if (device != ordinal) {
      const KernelShape shape = kernel.shape;
      kernel = {};
      kernel.shape = shape;
    }
    process.plain_launches += kernel.plain;
  }
  process.graph_launches = 0;
  take_out(process.graphs, [ordinal](const Graph& graph) { return graph.device != ordinal; });
  for (const Graph& graph : process.graphs) process.graph_launches += graph.launches;
}

void keep(ProcessTrace& process, i32 ordinal) {
  if (process.loop) {
    auto own = std::make_shared<ProcessTrace>(*process.loop);
    keep(*own, ordinal);
    process.loop = std::move(own);
  }
  const auto elsewhere = [ordinal](const auto& each) { return each.device != ordinal; };
  keep_kernels(process, ordinal);
  take_out(process.copies, elsewhere);
  take_out(process.pools, elsewhere);
  take_out(process.device_memory, elsewhere);
  take_out(process.device.devices, elsewhere);
  take_out(process.device.streams, elsewhere);
  take_out(process.device.environment, elsewhere);
}

}  // namespace

LoadedRun of_one_device(LoadedRun run, i64 device) {
  const DeviceMap devices(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    ProcessTrace& process = run.processes[p];
    i32 ordinal = -2;  // none of its devices: nothing of the process is left
    for (const Device& each : process.devices) {
      const Value number = devices.number(p, each.ordinal);
      if (!is_null(number) && std::get<i64>(number) == device) ordinal = each.ordinal;
    }
    keep(process, ordinal);
  }
  run.only_device = device;
  return run;
}

bool uses_several_devices(const LoadedRun& run) { return DeviceMap(run).entries().size() > 1; }

}  // namespace gputrace
