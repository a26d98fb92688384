// ProcessBuilder: what was launched, by which kernel in which shape.
#include <emmintrin.h>

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

ProcessBuilder::Launched& ProcessBuilder::launched(const KernelLaunch& value) {
  constexpr std::size_t kFrom = offsetof(KernelLaunch, context), kGrid = offsetof(KernelLaunch, grid_x);
  static_assert(sizeof(KernelLaunch) - kFrom == sizeof(Launched::words));
  const u8* const bytes = reinterpret_cast<const u8*>(&value);
  const auto word = [bytes](std::size_t at) {
    u64 read;
    std::memcpy(&read, bytes + at, sizeof read);
    return read;
  };
  const u64 hash = value.function ^ word(kGrid) << 20 ^ word(kGrid + 8) ^ word(kGrid + 16) << 12;
  Launched& known = recent_launches_[hash * 0x9e3779b97f4a7c15ull >> 54];
  const auto differs = [&](std::size_t pair) {
    return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + kFrom + 16 * pair)),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(known.words.data() + 2 * pair)));
  };
  const __m128i words = _mm_or_si128(_mm_or_si128(differs(0), differs(1)), differs(2));
  const bool same = _mm_movemask_epi8(_mm_cmpeq_epi8(words, _mm_setzero_si128())) == 0xffff;
  const u64 version = functions_.version() + contexts_version_;
  if (!same || known.handle != value.function || known.version != version) [[unlikely]]
    find_launched(value, known);
  return known;
}

[[gnu::noinline]] void ProcessBuilder::find_launched(const KernelLaunch& value, Launched& known) {
  count_launches(known);
  KernelShape shape = shape_of(value);
  shape.function = functions_.find(value.function);
  shape.context = cached_context_index(value.context);
  kernel(shape);
  known.handle = value.function;
  std::memcpy(known.words.data(), &value.context, sizeof known.words);
  known.kernel = last_kernel_;
  known.context = shape.context;
  known.function = shape.function;
  known.version = functions_.version() + contexts_version_;
}

void ProcessBuilder::count_launches(Launched& known) {
  if (known.plain == 0) return;
  facts_.kernels[known.kernel].plain += known.plain;
  known.plain = 0;
}

// Most of a large trace: a launch that succeeded, in the window, as the thread's own call. All that it leads to stands here, in one
// piece; what is rare is done elsewhere. False: it is another one, and nothing was done.
bool ProcessBuilder::add_usual_launch(const RecordHeader& record, u32 lane) {
  if (record.size != sizeof(KernelLaunch) || record.result != 0 || record.call == 0) return false;
  const KernelLaunch& value = reinterpret_cast<const KernelLaunch&>(record);
  ThreadState& thread = threads_[lane];
  if (value.flags & (kLaunchCaptured | kLaunchCaptureUnknown) || thread.definitions) return false;
  if (!is_new_call(thread, record)) return false;
  if (facts_.library.collected && sort_of(record.call) == CallSort::Library) return false;
  const auto [begin, end] = clock_.span(record);
  if (!window_.holds(begin)) return false;

  const u64 duration = static_cast<u64>(end - begin);
  thread.newest = record.end;
  note_call(thread, record);
  note_launch(thread);
  samples_.called(lane, begin, end);
  const u64 self = thread.nesting.self_time(begin, end);
  count_in_span(begin, end);
  Launched& what = launched(value);
  if (facts_.library.collected) timeline_.library_launched({begin, lane, what.kernel, false, true});
  ++what.plain;
  ++facts_.plain_launches;  // asked for at each allocation
  ++thread.usual_launches;
  thread.launched = what.function;
  if (sums_) {
    ++thread.calls;
    CallFacts& call = call_facts(record.call);
    ++call.calls;
    call.self_ns += self;
    call.durations.add(duration);
    log(thread, lane, begin, end, LoopKind::Kernel, what.function);
    facts_.functions[what.function].launch_calls.add(duration);
    if (loops_.launched(lane, what.kernel, value.stream, duration)) timeline_.wait_was_needless(lane);
  }
  // Where it will be read: a copy would read it while it is still being stored.
  TimelineFeed::Given& given = timeline_.new_operation();
  fill(given.operation, {record, thread, begin, end, true, true, false, lane}, OperationKind::Kernel);
  given.operation.programmatic = (value.flags & kLaunchProgrammatic) != 0;
  given.operation.target = what.kernel;
  given.stream.context = what.context;
  given.stream.handle = value.stream;
  given.stream.per_thread = (value.flags & kLaunchPerThread) != 0;
  given.stream.thread = lane;
  given.as_call = true;
  return true;
}

void ProcessBuilder::on_launch(const Moment& at) {
  const RecordView<KernelLaunch> view(at.record);
  const KernelLaunch& value = *view;
  if (value.header.result != 0) return;
  const bool captured = value.flags & kLaunchCaptured;
  if (!captured) note_launch(at.thread);
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
  note_launch(at.thread);
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
