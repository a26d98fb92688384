#include "analysis/pass/merge_timeline.h"

#include <algorithm>

namespace gputrace {
namespace {

// The entries of `host` in the order of `device`, with new ones where the pass had none. `add(entry, of the device)`
// completes each.
template <typename Host, typename Device, typename Add>
void merge(std::vector<Host>& host, std::vector<Device>& device, Add&& add) {
  std::vector<Host> merged;
  merged.reserve(device.size());
  for (Device& each : device) {
    Host& entry = merged.emplace_back();
    if (each.pass_number != kNone) entry = std::move(host[each.pass_number]);
    add(entry, each);
  }
  host = std::move(merged);
}

void add_function(Function& function, TimelineFunction& device) {
  if (function.symbol.empty()) function.symbol = std::string(device.symbol);
  if (function.registers < 0 && device.registers >= 0) {
    function.registers = device.registers;
    if (function.local_bytes < 0) function.local_bytes = device.local_bytes;
  }
  function.waits = std::move(device.waits);
}

void add_copies(CopyGroup& group, const TimelineCopies& device) {
  group.kind = device.key.kind;
  group.memory = device.key.memory;
  group.asynchronous = device.key.asynchronous;
  group.device = device.key.device;
  group.device_count = device.count;
  group.device_bytes = device.bytes;
  group.device_ns = device.device_ns;
  group.answered = device.answered;
  group.answered_bytes = device.answered_bytes;
  group.started = device.started;
  group.started_bytes = device.started_bytes;
}

// Functions by the numbers that they have from here on.
void renumber_functions(const std::vector<TimelineFunction>& functions, ProcessTrace& facts) {
  std::vector<u32> places(functions.size(), kNone);
  for (u32 place = 0; place < functions.size(); ++place) {
    if (functions[place].pass_number != kNone) places[functions[place].pass_number] = place;
  }
  const auto renumber = [&places](u32& function) {
    if (function != kNone) function = places[function];
  };
  for (Graph& graph : facts.graphs) renumber(graph.largest);
  for (LiveMemory& live : facts.live_memory) renumber(live.function);
  for (LoopEvent& event : facts.loop_log.events) {
    if (event.kind() == LoopKind::Kernel && event.number() < places.size())
      event.symbol = loop_symbol(LoopKind::Kernel, places[event.number()]);
  }
}

void renumber_kernels(const std::vector<TimelineKernel>& kernels, ProcessTrace& facts) {
  std::vector<u32> places(kernels.size(), kNone);
  for (u32 place = 0; place < kernels.size(); ++place) {
    if (kernels[place].pass_number != kNone) places[kernels[place].pass_number] = place;
  }
  for (KernelOrigin& pair : facts.lines.replayed) pair.kernel = places[pair.kernel];
  for (LaunchSequence& sequence : facts.loops.sequences) {
    sequence.first = places[sequence.first];
    sequence.last = places[sequence.last];
  }
}

}  // namespace

void merge_timeline(TimelineFacts&& device, ProcessTrace& facts) {
  renumber_kernels(device.kernels, facts);
  renumber_functions(device.functions, facts);
  merge(facts.functions, device.functions, add_function);
  merge(facts.contexts, device.contexts,
        [](Context& context, const TimelineContext& made) { context.device = made.device; });
  merge(facts.copies, device.copies, add_copies);
  merge(facts.kernels, device.kernels, [](KernelLaunches& kernel, TimelineKernel& made) {
    kernel.shape = made.shape;
    kernel.times = std::move(made.times);
    kernel.answered = made.answered;
    kernel.started = made.started;
    kernel.unjoined = made.unjoined;
  });
  for (std::size_t i = 0; i < device.graphs.size(); ++i) facts.graphs[i].times = device.graphs[i];
  facts.lines.times = std::move(device.stacks);
  facts.lines.kernels = std::move(device.kernel_origins);
  facts.lines.pauses = std::move(device.pauses);
  facts.library = std::move(device.library);
  facts.device = std::move(device.activity);
  facts.activities = std::move(device.activities);
  for (std::size_t i = 0; i < device.ranges.size(); ++i) {
    facts.nvtx[i].device_ns = device.ranges[i].device_ns;
    facts.nvtx[i].kernels = device.ranges[i].kernels;
  }
  for (const DeviceTimes& times : facts.device.devices) {
    if (times.last > facts.end && facts.end != 0) facts.end = times.last;
  }
}

}  // namespace gputrace
