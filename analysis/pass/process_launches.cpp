// ProcessBuilder: what was launched, by which kernel in which shape.
#include <algorithm>

#include "analysis/pass/process_builder.h"

namespace gputrace {

u32 ProcessBuilder::known_kernel(const KernelShape& shape) {
  if (last_kernel_ != kNone && facts_.kernels[last_kernel_].shape == shape) return last_kernel_;
  const auto known = kernels_by_shape_.find(shape);
  return known == kernels_by_shape_.end() ? kNone : last_kernel_ = known->second;
}

KernelLaunches& ProcessBuilder::kernel(const KernelShape& shape) {
  if (known_kernel(shape) == kNone) {
    last_kernel_ = static_cast<u32>(facts_.kernels.size());
    kernels_by_shape_.emplace(shape, last_kernel_);
    facts_.kernels.emplace_back().shape = shape;
    timeline_.kernel_came(shape);
  }
  return facts_.kernels[last_kernel_];
}

const ProcessBuilder::Launched& ProcessBuilder::launched(const KernelLaunch& value) {
  const u64 version = functions_.version() + contexts_version_;
  u64 hash =
      value.function ^ static_cast<u64>(value.grid_x) << 40 ^ static_cast<u64>(value.block_x) << 20 ^ value.grid_y;
  hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
  Launched& known = recent_launches_[hash >> 54];
  const u32 cluster[3] = {value.cluster_x, value.cluster_y, value.cluster_z};
  const u32 dimensions[7] = {value.grid_x,
                             value.grid_y,
                             value.grid_z,
                             value.block_x,
                             value.block_y,
                             value.block_z,
                             value.dynamic_shared_bytes};
  if (known.version == version && known.function == value.function && known.context_handle == value.context &&
      std::equal(known.grid, known.grid + 3, dimensions) && std::equal(known.block, known.block + 3, dimensions + 3) &&
      known.dynamic_shared == dimensions[6] && std::equal(known.cluster, known.cluster + 3, cluster))
    return known;
  KernelShape shape;
  shape.function = functions_.find(value.function);
  shape.context = context_named(value.context);
  std::copy(dimensions, dimensions + 3, shape.grid);
  std::copy(dimensions + 3, dimensions + 6, shape.block);
  shape.dynamic_shared = value.dynamic_shared_bytes;
  std::copy(cluster, cluster + 3, shape.cluster);
  kernel(shape);
  known.function = value.function;
  known.context_handle = value.context;
  std::copy(shape.grid, shape.grid + 3, known.grid);
  std::copy(shape.block, shape.block + 3, known.block);
  known.dynamic_shared = shape.dynamic_shared;
  std::copy(cluster, cluster + 3, known.cluster);
  known.kernel = last_kernel_;
  known.context = shape.context;
  known.version = functions_.version() + contexts_version_;
  return known;
}

void ProcessBuilder::on_launch(const Moment& at) {
  const auto value = decode<KernelLaunch>(at.record);
  if (value.header.result != 0) return;
  const bool captured = value.flags & kLaunchCaptured;
  if (!captured) {
    for (bool& launched : at.thread.launched_since_copy) launched = true;
    at.thread.launched_since_allocation = true;
  }
  if (!at.counted) {
    if (!captured)
      timeline_.operation(operation_of(at, OperationKind::Kernel),
                          stream_of(at, value.stream, value.context, value.flags));
    timeline_.library_launched({at.begin, at.lane, kNone, captured, false});
    return;
  }
  const Launched& what = launched(value);
  KernelLaunches& group = facts_.kernels[what.kernel];
  timeline_.library_launched({at.begin, at.lane, what.kernel, captured, true});
  if (captured) {
    ++group.captured;
    return;
  }
  ++group.plain;
  ++facts_.plain_launches;
  if (value.flags & kLaunchCaptureUnknown) ++facts_.launches_unsure;
  facts_.functions[group.shape.function].launch_calls.add(at.duration());
  loops_.launched(at.lane, what.kernel, value.stream, at.duration());
  HostOperation operation = operation_of(at, OperationKind::Kernel);
  operation.target = what.kernel;
  timeline_.operation(operation, {what.context, value.stream, (value.flags & kLaunchPerThread) != 0, at.lane});
}

void ProcessBuilder::on_graph_launch(const Moment& at) {
  const auto value = decode<GraphLaunch>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  for (bool& launched : at.thread.launched_since_copy) launched = true;
  at.thread.launched_since_allocation = true;
  if (at.counted) ++facts_.graph_launches;
  loops_.spoiled(at.lane);
  HostOperation operation = operation_of(at, OperationKind::Graph);
  const u32 context = context_named(value.context);
  operation.target = graphs_.launched(value.exec, context, at.counted, at.duration());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

}  // namespace gputrace
