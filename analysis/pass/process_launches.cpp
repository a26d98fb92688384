// ProcessBuilder: what was launched, by which kernel in which shape.
#include <cstddef>
#include <cstring>

#include "analysis/pass/process_builder.h"
#include "analysis/read/record_view.h"

namespace gputrace {

u32 ProcessBuilder::known_kernel(const KernelShape& shape) {
  if (last_kernel_ != kNone && facts_.kernels[last_kernel_].shape == shape) return last_kernel_;
  const auto known = kernels_by_shape_.find(shape);
  return known == kernels_by_shape_.end() ? kNone : last_kernel_ = known->second;
}

[[gnu::noinline]] KernelLaunches& ProcessBuilder::kernel(const KernelShape& shape) {
  if (known_kernel(shape) == kNone) {
    last_kernel_ = static_cast<u32>(facts_.kernels.size());
    kernels_by_shape_.emplace(shape, last_kernel_);
    facts_.kernels.emplace_back().shape = shape;
    timeline_.kernel_came(shape);
  }
  return facts_.kernels[last_kernel_];
}

namespace {

KernelShape shape_of(const KernelLaunch& value) {
  KernelShape shape;
  shape.grid[0] = value.grid_x, shape.grid[1] = value.grid_y, shape.grid[2] = value.grid_z;
  shape.block[0] = value.block_x, shape.block[1] = value.block_y, shape.block[2] = value.block_z;
  shape.dynamic_shared = value.dynamic_shared_bytes;
  shape.cluster[0] = value.cluster_x, shape.cluster[1] = value.cluster_y, shape.cluster[2] = value.cluster_z;
  return shape;
}

}  // namespace

const ProcessBuilder::Launched& ProcessBuilder::launched(const KernelLaunch& value) {
  const u64 version = functions_.version() + contexts_version_;
  // Words as they lie in the record: in an array they would be read back, two by two, before they are stored.
  static_assert(offsetof(KernelLaunch, dynamic_shared_bytes) == offsetof(KernelLaunch, grid_x) + 24 &&
                offsetof(KernelLaunch, priority) == offsetof(KernelLaunch, cluster_x) + 6);
  const auto word = [bytes = reinterpret_cast<const u8*>(&value)](std::size_t at) {
    u64 read;
    std::memcpy(&read, bytes + at, sizeof read);
    return read;
  };
  constexpr std::size_t kGrid = offsetof(KernelLaunch, grid_x);
  constexpr u64 kClusters = 0xffffffffffff;
  const u64 grid = word(kGrid), middle = word(kGrid + 8), block = word(kGrid + 16);
  const u64 clusters = word(offsetof(KernelLaunch, cluster_x)) & kClusters;
  u64 hash = value.function ^ grid << 20 ^ middle ^ block << 12;
  hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
  Launched& known = recent_launches_[hash >> 54];
  const auto& words = known.words;
  const u64 differs = (known.version ^ version) | (words[0] ^ value.function) | (words[1] ^ value.context) |
                      (words[2] ^ grid) | (words[3] ^ middle) | (words[4] ^ block) |
                      (words[5] ^ value.dynamic_shared_bytes) | (words[6] ^ clusters);
  if (differs == 0) return known;
  KernelShape shape = shape_of(value);
  shape.function = functions_.find(value.function);
  shape.context = cached_context_index(value.context);
  kernel(shape);
  known.words = {value.function, value.context, grid, middle, block, value.dynamic_shared_bytes, clusters};
  known.kernel = last_kernel_;
  known.context = shape.context;
  known.version = functions_.version() + contexts_version_;
  return known;
}

void ProcessBuilder::on_launch(const Moment& at) {
  const RecordView<KernelLaunch> view(at.record);
  const KernelLaunch& value = *view;
  if (value.header.result != 0) return;
  const bool captured = value.flags & kLaunchCaptured;
  if (!captured) {
    for (bool& launched : at.thread.launched_since_copy) launched = true;
    at.thread.launched_since_allocation = true;
  }
  if (!at.counted) {
    if (!captured) {
      const StreamName stream = stream_of(at, value.stream, value.context, value.flags);
      TimelineFeed::Given& given = timeline_.new_operation();
      fill(given.operation, at, OperationKind::Kernel);
      given.stream = stream;
      given.as_call = at.call_untold;
    }
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
  at.thread.launched = group.shape.function;
  ++group.plain;
  ++facts_.plain_launches;
  log(at, LoopKind::Kernel, group.shape.function);
  StackTotals& stack = stack_of(at);
  ++stack.calls;
  ++stack.launches;
  if (value.flags & kLaunchCaptureUnknown) ++facts_.launches_unsure;
  if (sums_) {
    facts_.functions[group.shape.function].launch_calls.add(at.duration());
    if (loops_.launched(at.lane, what.kernel, value.stream, at.duration())) timeline_.wait_was_needless(at.lane);
  }
  // Where it will be read: a copy would read it while it is still being stored.
  TimelineFeed::Given& given = timeline_.new_operation();
  fill(given.operation, at, OperationKind::Kernel);
  given.operation.programmatic = (value.flags & kLaunchProgrammatic) != 0;
  given.operation.target = what.kernel;
  given.stream.context = what.context;
  given.stream.handle = value.stream;
  given.stream.per_thread = (value.flags & kLaunchPerThread) != 0;
  given.stream.thread = at.lane;
  given.as_call = at.call_untold;
}

void ProcessBuilder::on_graph_launch(const Moment& at) {
  const auto value = decode<GraphLaunch>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  for (bool& launched : at.thread.launched_since_copy) launched = true;
  at.thread.launched_since_allocation = true;
  if (at.counted) {
    ++facts_.graph_launches;
    StackTotals& stack = stack_of(at);
    ++stack.calls;
    ++stack.launches;
  }
  if (loops_.replayed(at.lane)) timeline_.wait_was_needless(at.lane);
  HostOperation operation = operation_of(at, OperationKind::Graph);
  const u32 context = cached_context_index(value.context);
  operation.target = graphs_.launched(value.exec, context, at.counted, at.duration());
  operation.bytes = graphs_.version_of(value.exec).number;
  if (at.counted) log(at, LoopKind::Graph, operation.target);
  Graph& graph = facts_.graphs[operation.target];
  const i32 device = device_of(context_of(value.stream, value.context));
  if (at.counted) graph.device = graph.launches == 1 || graph.device == device ? device : Graph::kSeveral;
  graphs_.for_each_memory_node(value.exec, [&](const GraphTable::Node& node) {
    if (meter_.spent()) return;  // one record is the work of all its nodes
    if (node.kind == GraphTable::kAllocNode)
      ledger_.allocated_by_graph(node.address, node.bytes, node.device, context, at.end);
    else
      ledger_.freed_by_graph(node.address, at.end);
  });
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

}  // namespace gputrace
