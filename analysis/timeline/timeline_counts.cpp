// What the timeline counts of each operation, by kernel, kind of copy and graph.
#include <algorithm>

#include "analysis/timeline/timeline.h"

namespace gputrace {
namespace {

// 0: it was not later.
u64 since(Nanos from, Nanos to) { return to > from ? static_cast<u64>(to - from) : 0; }

constexpr u64 kLongCall = 50'000;  // ns: a launch call that long in front of a full queue was held by it

}  // namespace

// What counts for its kernel, copies, graph, range and library, and for steps.
void Timeline::count(const DeviceOperation& operation, const Joined& joined) {
  const HostOperation* const call = joined.call;
  const bool is_kernel = operation.kind == OperationKind::Kernel;
  const u32 kernel = is_kernel ? count_kernel(operation, joined) : kNone;
  if (on_device(operation)) log_activity(operation, kernel, call);
  if (call && ranges_.any() && on_device(operation))
    ranges_.ran(call->thread, call->begin, operation.start, operation.end, is_kernel);
  if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset) count_copy(operation, joined);
  if (call && call->kind == OperationKind::Graph && call->counted) count_graph(operation, *call);
  if (facts_.library.collected && is_kernel && call && call->kind == OperationKind::Kernel)
    libraries_.executed(call->thread, call->begin, static_cast<u64>(operation.end - operation.start));
}

// For the window of the call: its operation is counted where it started.
void Timeline::count_answer(const HostOperation& call) {
  if (call.target == kNone) return;
  if (call.kind == OperationKind::Kernel) ++facts_.kernels[call.target].answered;
  if (call.kind != OperationKind::Copy && call.kind != OperationKind::Memset) return;
  facts_.copies[call.target].answered += !call.part;
  facts_.copies[call.target].answered_bytes += call.bytes;
}

u32 Timeline::count_kernel(const DeviceOperation& operation, const Joined& joined) {
  DeviceShape& shape = shapes_[operation.shape];
  u32 target = kNone;
  if (joined.call && joined.call->kind == OperationKind::Kernel) target = joined.call->target;
  if (target == kNone) {
    const u32 context = joined.call ? window_.streams().context(joined.call->stream) : kNone;
    // Kernels of one name and shape may be of several modules: where nodes have ids, each node is looked up.
    if (operation.detail != 0) {
      target = targets_.kernel_of(shape, context, names_of(operation, joined.call));
    } else {
      if (shape.graph_target == kNone || shape.graph_context != context) {
        shape.graph_target = targets_.kernel_of(shape, context, {});
        shape.graph_context = context;
      }
      target = shape.graph_target;
    }
  }
  ++activity_.devices[operation.device].kernels;
  TimelineKernel& kernel = facts_.kernels[target];
  count_execution(kernel, joined, target, static_cast<u64>(operation.end - operation.start), shape);
  kernel.started += joined.call && !joined.call->answered && joined.call->kind == OperationKind::Kernel;
  return target;
}

void Timeline::count_execution(TimelineKernel& kernel, const Joined& joined, u32 target, u64 length,
                               const DeviceShape& shape) {
  activity_.join.nodes_in_doubt += kernel.unjoined;
  kernel.times.durations.add(length);
  if (joined.origin != 0) kernel_origins_.add(target, joined.origin, length);
  if (shape.registers == 0 || kernel.shape.function == kNone) return;
  // What runs was compiled: of PTX the function's own facts may not tell.
  TimelineFunction& function = facts_.functions[kernel.shape.function];
  if (function.registers >= 0) [[likely]]
    return;
  function.registers = static_cast<i32>(shape.registers);
  function.local_bytes = static_cast<i32>(shape.local_bytes);
}

void Timeline::log_activity(const DeviceOperation& operation, u32 kernel, const HostOperation* call) {
  Activity what = operation.collective ? Activity::Collective : Activity::Kernel;
  if (operation.kind == OperationKind::Copy) {
    const TransferKind kind = shapes_[operation.shape].transfer;
    what = kind == TransferKind::DtoH   ? Activity::ToHost
           : kind == TransferKind::HtoD ? Activity::ToDevice
                                        : Activity::OnDevice;
  }
  activities_.add(operation.start, operation.end, what, kernel, call ? call->begin : 0);
}

[[gnu::noinline]] void Timeline::count_copy(const DeviceOperation& operation, const Joined& joined) {
  DeviceTimes& times = activity_.devices[operation.device];
  ++(operation.kind == OperationKind::Memset ? times.memsets : times.copies);
  DeviceShape& shape = shapes_[operation.shape];
  u32 target = kNone;
  const bool in_graph = joined.call && joined.call->kind == OperationKind::Graph;
  if (joined.call && !in_graph) target = joined.call->target;
  if (target == kNone) {
    const u32 context = in_graph ? 1 : 0;
    if (shape.graph_target == kNone || shape.graph_context != context) {
      shape.graph_target = targets_.copies_of(shape, in_graph);
      shape.graph_context = context;
    }
    target = shape.graph_target;
  }
  TimelineCopies& group = facts_.copies[target];
  const bool part = joined.call && joined.call->part;
  group.count += !part;
  group.bytes += operation.detail;
  group.device_ns += static_cast<u64>(operation.end - operation.start);
  if (!joined.call || joined.call->answered || in_graph) return;
  group.started += !part;
  group.started_bytes += operation.detail;
}

void Timeline::count_wait(const DeviceOperation& operation, const HostOperation& call, const Waited& waited,
                          u32 depth) {
  if (call.target == kNone) return;
  if (call.kind == OperationKind::Graph) {
    GraphTimes& times = graph_times(call.target);
    ++times.replays;
    times.latency_ns += since(call.begin, operation.start);
    times.gap_ns += since(std::max(call.end, waited.until), operation.start);
  }
  if (call.kind != OperationKind::Kernel) return;
  count_launch(operation, call, facts_.functions[facts_.kernels[call.target].shape.function].waits, waited, depth);
}

void Timeline::count_launch(const DeviceOperation& operation, const HostOperation& call, LaunchTimes& times,
                            const Waited& waited, u32 depth) {
  const u64 api = static_cast<u64>(call.end - call.begin);
  times.latency.add(since(call.begin, operation.start));
  times.queue_ns += since(call.end, operation.start);
  times.gap_ns += since(std::max(call.end, waited.until), operation.start);
  if (operation.queued != 0) {
    times.to_queued_ns += since(call.begin, operation.queued);
    times.in_buffer.add(static_cast<u64>(operation.submitted - operation.queued));
    times.to_start.add(static_cast<u64>(operation.start - operation.submitted));
  }
  times.short_kernels += static_cast<u64>(operation.end - operation.start) < api;
  if (depth >= LaunchTimes::kFullQueue && api > kLongCall) {
    ++times.blocked;
    times.blocked_ns += api;
  }
}

[[gnu::noinline]] GraphTimes& Timeline::graph_times(u32 graph) {
  if (graph >= facts_.graphs.size()) facts_.graphs.resize(graph + 1u);
  return facts_.graphs[graph];
}

// Nodes come in the order of their starts, so the first begins the replay.
[[gnu::noinline]] void Timeline::count_graph(const DeviceOperation& operation, const HostOperation& call) {
  if (call.target == kNone) return;
  GraphTimes& times = graph_times(call.target);
  if (operation.kind != OperationKind::Graph) ++times.nodes;
  const Nanos from = call.answered ? call.device_end : operation.start;
  if (operation.end > from) times.device_ns += static_cast<u64>(operation.end - from);
}

}  // namespace gputrace
