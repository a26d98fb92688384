// Timeline: which call a device operation belongs to.
#include <algorithm>

#include "analysis/timeline/timeline.h"

namespace gputrace {
namespace {

constexpr u32 kLookAhead = 64;     // operations of a stream whose records may be missing
constexpr u32 kBatchLimit = 4096;  // members of one batch call

bool same_dimensions(const KernelShape& shape, const DeviceShape& device) {
  if (shape.block[0] == 0) return true;  // cuLaunch: its dimensions were set by other calls
  return std::equal(shape.grid, shape.grid + 3, device.grid) &&
         std::equal(shape.block, shape.block + 3, device.block) && shape.dynamic_shared == device.dynamic_shared;
}

// Both are known, and are not the same.
bool differ(std::string_view symbol, std::string_view other) {
  return !symbol.empty() && !other.empty() && symbol != other;
}

// Looks of operations that are not told apart further, and that of what is never joined by order.
constexpr OperationLook kNoLook = 0, kOfGraph = 1, kAnyKernel = 2;

OperationLook look_with(OperationLook look, u64 value) {
  look = (look ^ value) * 0xff51afd7ed558ccdull;
  return look ^ look >> 32;
}

OperationLook transfer_look(OperationKind kind, u64 bytes) { return look_with(static_cast<u64>(kind), bytes) | 4; }

// Of a KernelShape or a DeviceShape.
template <typename Shape>
OperationLook kernel_look(const Shape& shape) {
  OperationLook look = shape.dynamic_shared;
  for (int i = 0; i < 3; ++i) look = look_with(look, static_cast<u64>(shape.grid[i]) << 32 | shape.block[i]);
  return look | 4;
}

bool same_direction(TransferKind a, TransferKind b) {
  const auto on_device = [](TransferKind kind) { return kind == TransferKind::DtoD || kind == TransferKind::PtoP; };
  return a == b || a == TransferKind::Unknown || b == TransferKind::Unknown || (on_device(a) && on_device(b));
}

}  // namespace

// `strictly`: nothing but this says that they belong together.
bool Timeline::agrees(const HostOperation& call, const DeviceOperation& operation, bool strictly) const {
  if (strictly && (call.answered || call.begin - intake_.clock_error() > operation.start)) return false;
  const bool of_graph = operation.graph != 0 || operation.kind == OperationKind::Graph;
  if (call.kind == OperationKind::Graph) return !strictly || of_graph;
  if (call.kind != operation.kind || (strictly && of_graph)) return false;
  if (call.target == kNone) return !strictly;
  const DeviceShape& shape = shapes_[operation.shape];
  if (operation.kind != OperationKind::Kernel) {
    // A call's name says a direction, its addresses may say another ("DtoH" of pinned memory): the number and the bytes do.
    if (call.bytes == operation.detail && !strictly) return true;
    if (strictly && call.bytes != operation.detail) return false;
    return same_direction(facts_.copies[call.target].key.kind, shape.transfer);
  }
  if (call.target == shape.target) return true;
  const KernelShape& known = facts_.kernels[call.target].shape;
  if (!same_dimensions(known, shape)) return false;
  if (known.function == kNone) return true;
  if (!differ(facts_.functions[known.function].symbol, shape.symbol)) return true;
  // CUPTI's name may be that of what stood at the function's place before (13.0, where XLA unloads a module and loads the next).
  return !strictly && targets_.all_gone(shape.symbol);
}

// What a sure join tells about both sides.
void Timeline::learn(const HostOperation& call, const DeviceOperation& operation) {
  if (intake_.host_stream(operation.stream) == kNone && call.kind != OperationKind::Graph) {
    intake_.set_host_stream(operation.stream, call.stream);
    activity_.streams[operation.stream].handle = window_.streams().handle(call.stream);
  }
  if (call.kind != OperationKind::Kernel || call.target == kNone) return;
  DeviceShape& shape = shapes_[operation.shape];
  if (shape.target == call.target) return;
  const u32 function = facts_.kernels[call.target].shape.function;
  if (function != kNone) {
    if (differ(facts_.functions[function].symbol, shape.symbol)) return;  // see agrees()
    targets_.learn_symbol(function, shape.symbol);
  }
  shape.target = call.target;
}

// A runtime call that sets a box makes a memset for each of its layers, all under the runtime call's id: each takes the
// next one.
[[gnu::noinline]] Timeline::Joined Timeline::next_of_one_call(HostOperation& answered, u32 sequence,
                                                              const DeviceOperation& operation) {
  constexpr u32 kMostLayers = 4096;
  const HostOperation* at = &answered;
  for (u32 i = 0; i < kMostLayers; ++i) {
    const u32 next = at->next_in_thread;
    HostOperation* const call = window_.find(next);
    if (!call || call->kind != OperationKind::Memset || call->bytes != operation.detail ||
        call->stream != answered.stream)
      break;
    if (!call->answered) return {call, next};
    at = call;
  }
  return {&answered, sequence};
}

// `first`: the operation of the host that has its key, as it was when it was looked up ahead.
Timeline::Joined Timeline::join_by_key(const DeviceOperation& operation, u32 first) {
  if (since_tied_ != ReorderWindow::kNext) [[unlikely]] {
    ++since_tied_;
    first = keyed(operation);
  }
  HostOperation* const leader = window_.find(first);
  if (!leader) return {};
  // A batch gives one operation a member, all under one id.
  HostOperation* fallback = nullptr;
  u32 fallback_sequence = kNone;
  for (u32 i = 0; i < kBatchLimit; ++i) {
    HostOperation* const call = window_.find(first + i);
    if (!call || (i > 0 && (!call->batch_member || call->begin != leader->begin || call->thread != leader->thread)))
      break;
    if (!agrees(*call, operation, false)) continue;
    const bool next_alike = call->answered || (call->kind == OperationKind::Copy && call->bytes != operation.detail);
    if (!next_alike || call->kind == OperationKind::Graph) return {call, first + i};
    if (!fallback) fallback = call, fallback_sequence = first + i;
  }
  if (!fallback) {
    ++activity_.join.key_mismatch;
    return {};
  }
  if (operation.kind == OperationKind::Memset) return next_of_one_call(*fallback, fallback_sequence, operation);
  return {fallback, fallback_sequence};
}

// The first operation of the host's stream that agrees; kNone: none among the next ones.
u32 Timeline::agreeing(u32 stream, const DeviceOperation& operation) const {
  u32 sequence = window_.first_waiting(stream);
  for (u32 i = 0; i < kLookAhead; ++i) {
    const HostOperation* call = window_.find(sequence);
    if (!call) return kNone;
    if (agrees(*call, operation, true)) return sequence;
    sequence = call->next_in_stream;
  }
  return kNone;
}

// Whether the order alone decided: where records are missing, the operation may be that of the call after this one.
bool Timeline::has_double(const HostOperation& call, const DeviceOperation& operation) const {
  const HostOperation* next = window_.find(call.next_in_stream);
  return next && agrees(*next, operation, true);
}

[[gnu::noinline]] OperationLook Timeline::look_of(const HostOperation& call) const {
  if (!is_reported(call.kind)) return kNoLook;
  if (call.kind == OperationKind::Graph) return kOfGraph;
  if (call.target == kNone) return kNoLook;
  if (call.kind != OperationKind::Kernel) return transfer_look(call.kind, call.bytes);
  const KernelShape& shape = facts_.kernels[call.target].shape;
  return shape.block[0] == 0 ? kAnyKernel : kernel_look(shape);
}

[[gnu::noinline]] void Timeline::begin_candidates() {
  candidates_.activate();
  for (u32 sequence = window_.oldest(); sequence != window_.next(); ++sequence) {
    const HostOperation& call = *window_.find(sequence);
    if (!intake_.taken(call.stream)) candidates_.add(look_of(call), call.stream);
  }
}

// The operation of a stream that no stream of the device is known to be; kNone: there is none, or there are several
// streams that would do, and neither is believed.
u32 Timeline::the_one_that_agrees(const DeviceOperation& operation) {
  using Visited = StreamCandidates::Visited;
  if (!candidates_.active()) begin_candidates();
  u32 found = kNone;
  bool several = false;
  const auto visit = [&](u32 stream) {
    if (intake_.taken(stream) || window_.first_waiting(stream) == kNone) return Visited::Gone;
    const u32 sequence = agreeing(stream, operation);
    if (sequence == kNone || sequence == found) return Visited::Next;
    several = found != kNone;
    found = sequence;
    return several ? Visited::Stop : Visited::Next;
  };
  if (operation.graph != 0 || operation.kind == OperationKind::Graph) {
    candidates_.for_each(kOfGraph, visit);
  } else if (operation.kind != OperationKind::Kernel) {
    candidates_.for_each(transfer_look(operation.kind, operation.detail), visit);
  } else {
    candidates_.for_each(kernel_look(shapes_[operation.shape]), visit);
    if (!several) candidates_.for_each(kAnyKernel, visit);
  }
  return several ? kNone : found;
}

[[gnu::noinline]] u32 Timeline::join_by_order(const DeviceOperation& operation) {
  const u32 known = intake_.host_stream(operation.stream);
  return known != kNone ? agreeing(known, operation) : the_one_that_agrees(operation);
}

Timeline::Joined Timeline::join(const DeviceOperation& operation, u32 keyed) {
  JoinCounts& counts = activity_.join;
  const bool counted = report_.holds(operation.start);
  counts.operations += counted;
  Joined joined = join_by_key(operation, keyed);
  if (!joined.call) {
    const u32 sequence = join_by_order(operation);
    if (sequence != kNone) {
      joined = {window_.find(sequence), sequence};
      joined.call->by_order = true;
      counts.by_order_alike += counted && has_double(*joined.call, operation);
      window_.tie(operation.correlation, sequence);  // for the other nodes of a graph, the other pieces of a copy
      since_tied_ = 0;
    }
  }
  if (!joined.call) {
    counts.not_joined += counted;
    return joined;
  }
  if (joined.call->by_order) [[unlikely]]
    counts.by_order += counted;
  else
    counts.by_key += counted;
  learn(*joined.call, operation);
  // A copy that the host makes may begin before what stands in front of it in its stream has.
  if (on_device(operation)) pass(operation, joined.sequence);
  return joined;
}

// It had its turn in its stream.
void Timeline::pass(const DeviceOperation& operation, u32 sequence) {
  const u32 lost = window_.passed(sequence);
  if (lost != kNone) lost_before(*window_.find(lost), operation.start);
}

}  // namespace gputrace
