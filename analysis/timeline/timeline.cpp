#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <limits>

#include "analysis/replay/what_if.h"

namespace gputrace {
namespace {

constexpr u64 kTrimEvery = 16384;  // operations between two trims of the log
constexpr u64 kLongCall = 50'000;  // ns: a launch call that long in front of a full queue was held by it

DeviceClass class_of(const DeviceOperation& operation) {
  if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset) return DeviceClass::Copy;
  return operation.collective ? DeviceClass::Collective : DeviceClass::Compute;
}

bool longer(const IdleGap& a, const IdleGap& b) { return a.length() > b.length(); }

// What the host does while a device waits.
Activity activity_in_gap(IdleCause cause) {
  switch (cause) {
    case IdleCause::Launch:
    case IdleCause::QueueFull:
    case IdleCause::Dispatch:
    case IdleCause::GraphInternal:
      return Activity::Launch;
    case IdleCause::ModuleLoad:
      return Activity::Compilation;
    case IdleCause::Unknown:
    case IdleCause::OtherStream:
    case IdleCause::MemoryValue:
    case IdleCause::Collection:
      return Activity::Unknown;
    default:
      return Activity::Host;
  }
}

}  // namespace

Timeline::Timeline(const TraceReader& reader, TimeWindow window, Witness* witness)
    : report_(window),
      witness_(witness),
      activity_(facts_.activity),
      targets_(facts_),
      libraries_(reader.threads().size(), facts_.library),
      shapes_(reader.texts()),
      window_(reader.threads().size()),
      log_(reader.threads().size()),
      recorder_(reader.threads().size(), reader.file_size()),
      ranges_(reader.threads().size()),
      intake_(reader, activity_, shapes_, window_, overhead_, window) {}

void Timeline::called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind) {
  if (!intake_.active()) return;
  log_.add(thread, begin, end, call, kind);
  recorder_.called(thread, begin, end, call, kind);
}

void Timeline::operation(HostOperation operation, const StreamName& stream) {
  operation.on_device = operation.on_device && operation.expected;
  operation.expected = operation.expected && intake_.collecting();
  if (operation.kind == OperationKind::Kernel) operation.target = targets_.kernel(operation.target);
  if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset)
    operation.target = targets_.copies(operation.target);
  const u32 host = window_.streams().find(stream);
  put_on_tape(window_.add(operation, host));
  if (candidates_.active() && !intake_.taken(host)) candidates_.add(look_of(operation), host);
}

void Timeline::ordered(const StreamOrder& record, const StreamName& stream, Nanos begin, Nanos end) {
  if (record.header.result != 0 || (record.flags & kLaunchCaptured)) return;
  HostStreams& streams = window_.streams();
  HostOperation made;
  switch (static_cast<OrderKind>(record.what)) {
    case OrderKind::EventRecord:
      return streams.event_recorded(record.object, streams.find(stream));
    case OrderKind::StreamWaitEvent:
      return streams.event_awaited(record.object, streams.find(stream));
    case OrderKind::HostFunction:
      made.kind = OperationKind::HostFunction;
      break;
    case OrderKind::WaitValue:
      made.kind = OperationKind::MemoryValue;
      break;
    default:
      return;
  }
  made.begin = begin, made.end = end;
  made.thread = stream.thread;
  made.call = record.header.call;
  made.expected = made.on_device = false;
  put_on_tape(window_.add(made, streams.find(stream)));
}

void Timeline::put_on_tape(u32 sequence) {
  const HostOperation* const given = window_.find(sequence);
  if (!given || witness_ || !intake_.active() || !given->counted) return;
  recorder_.operation(sequence, *given, [&](auto&& visit) { window_.for_each_wait(*given, visit); });
}

void Timeline::waited(u32 thread, Nanos begin, Nanos end, const WaitedFor& what) {
  if (!intake_.active()) return;
  HostStreams& streams = window_.streams();
  recorder_.waited(thread, begin, end, [&](auto&& visit) {
    if (what.what == SyncKind::Event) return streams.for_each_of_event(what.object, visit);
    if (what.what == SyncKind::Stream) return streams.for_each_of_stream(streams.find(what.stream), visit);
    streams.for_each_of_context(what.stream.context, visit);
  });
}

void Timeline::object(const ObjectCall& record) {
  constexpr i64 kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  if (record.header.result != 0) return;
  const auto kind = static_cast<ObjectKind>(record.kind);
  const bool created = record.what == static_cast<u32>(ObjectAct::Created);
  const bool destroyed = record.what == static_cast<u32>(ObjectAct::Destroyed);
  HostStreams& streams = window_.streams();
  if (kind == ObjectKind::Event && destroyed) streams.event_destroyed(record.object);
  if (kind != ObjectKind::Stream) return;
  if (created) streams.created(record.object, !(record.value & kNonBlocking));
  if (destroyed) streams.destroyed(record.object);
}

void Timeline::device(const RecordHeader& record, Nanos begin, Nanos end) {
  if (!intake_.add(record, begin, end)) return;
  intake_.drain([this](const DeviceOperation& operation) { reorder_.add(operation, Taker{*this}); });
}

void Timeline::device_stream(const DeviceStream& record, u32 context, Nanos handled) {
  intake_.add_stream(record, context, handled);
}

TimelineFacts Timeline::finish() {
  intake_.drain([this](const DeviceOperation& operation) { reorder_.add(operation, Taker{*this}); });
  reorder_.finish(Taker{*this});
  give_up_unheard(std::numeric_limits<Nanos>::max());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceTimes& times = activity_.devices[i];
    devices_[i].sweep.finish(times);
    settle_gaps(static_cast<u32>(i), std::numeric_limits<Nanos>::max());
    std::sort(times.longest.begin(), times.longest.end(), longer);
  }
  limit_dispatch();
  for (std::size_t i = 0; i < tracks_.size(); ++i) tracks_[i].finish(activity_.streams[i]);
  activity_.join.calls_forgotten = window_.forgotten();
  for (u32 sequence = window_.oldest(); sequence != window_.next(); ++sequence) {
    const HostOperation* call = window_.find(sequence);
    activity_.join.calls_unanswered += call->expected && call->counted && !call->answered;
    activity_.join.untold += call->on_device && call->counted && !call->answered;
  }
  intake_.finish();
  if (activity_.clock.error >= 0) activity_.clock.error += activity_.clock.noise;
  // Nothing came before a call of CUPTI failed for good: that is no device timing, and the reason is in the states.
  if (activity_.join.operations == 0 && !activity_.states.empty() &&
      activity_.states.back().state == DeviceCollection::Failed)
    activity_.collected = false;
  libraries_.finish();
  if (activity_.collected && !witness_) facts_.gains = gains();
  facts_.activities = activities_.finish();
  facts_.ranges = ranges_.finish();
  return std::move(facts_);
}

u64 Timeline::things() const {
  return facts_.kernels.size() + activity_.streams.size() + facts_.library.rows.size() + facts_.library.uses.size();
}

// A run of which more than one operation in a hundred is missing is not that run.
GainFacts Timeline::gains() {
  constexpr u64 kOneIn = 100;
  GainFacts none;
  const JoinCounts& join = activity_.join;
  if ((join.calls_unanswered + join.not_joined + join.calls_forgotten) * kOneIn >
      join.operations + join.calls_unanswered) {
    none.why_not = "more than 1 % of the operations have no device record, or no call";
    return none;
  }
  return find_gains(recorder_.finish(), facts_.copies);
}

// The next operation in the order of starts.
void Timeline::take(DeviceOperation operation) {
  if (operation.device >= devices_.size()) devices_.resize(operation.device + 1u);
  if (operation.stream >= tracks_.size()) {
    tracks_.resize(operation.stream + 1u);
    uncounted_.resize(operation.stream + 1u);
  }
  const Joined joined = join(operation);
  const bool counted = report_.holds(operation.start);
  StreamTrack& track = tracks_[operation.stream];
  HostOperation* const call = joined.call;
  if (call && call->collective && operation.kind == OperationKind::Kernel) operation.collective = true;
  const Waited waited = waited_for(call, operation.stream);
  StreamTimes& stream = counted ? activity_.streams[operation.stream] : uncounted_[operation.stream];
  u32 depth = 0;
  u64 gap = 0;
  if (call && !call->answered) {
    depth = track.queued(stream, call->begin, call->batch_member ? -1 : call->end - call->begin, operation.start);
    const Nanos ready = std::max(call->end, waited.until);
    gap = operation.start > ready ? static_cast<u64>(operation.start - ready) : 0;
    if (counted && call->counted) count_wait(operation, *call, gap, depth);
    if (counted && operation.start < call->begin - intake_.clock_error()) ++activity_.join.before_call;
  }
  if (counted) {
    if (witness_) witness_->ran(operation, shapes_[operation.shape], call, activity_);
    if (call) entry_at(facts_.stacks, call->stack).device_ns += static_cast<u64>(operation.end - operation.start);
    if (on_device(operation)) find_gap(operation, joined, waited, depth);
    const u32 kernel = operation.kind == OperationKind::Kernel ? count_kernel(operation, joined) : kNone;
    if (on_device(operation)) log_activity(operation, kernel, call);
    if (call && ranges_.any() && on_device(operation))
      ranges_.ran(call->thread, call->begin, operation.start, operation.end, operation.kind == OperationKind::Kernel);
    if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset) count_copy(operation, joined);
    if (call && call->kind == OperationKind::Graph && call->counted) count_graph(operation, *call);
    if (facts_.library.collected && operation.kind == OperationKind::Kernel && call &&
        call->kind == OperationKind::Kernel)
      libraries_.executed(call->thread, call->begin, static_cast<u64>(operation.end - operation.start));
  }
  const bool alone = runs_alone(call, operation);
  if (alone) find_noise(track.overlap(operation.start));
  track.ran(stream, operation.start, operation.end, alone);
  if (call) {
    if (!call->answered && call->counted) count_answer(*call);
    recorder_.ran(joined.sequence, operation);
    call->answered = true;
    call->device_end = std::max(call->device_end, operation.end);
    if (call->stream >= host_ends_.size()) host_ends_.resize(call->stream + 1u);
    host_ends_[call->stream] = std::max(host_ends_[call->stream], operation.end);
    if (call->stream >= host_devices_.size()) host_devices_.resize(call->stream + 1u, kNone);
    host_devices_[call->stream] = operation.device;
  }
  if (++since_trim_ % kTrimEvery == 0) trim_logs();
}

// Nothing of its stream runs beside it: not so within a graph, a batch or a copy in pieces, nor where a launch asked for it.
bool Timeline::runs_alone(const HostOperation* call, const DeviceOperation& operation) const {
  return call && call->kind == operation.kind && operation.kind != OperationKind::Graph && !call->answered &&
         !call->batch_member && !call->programmatic && !call->by_order;
}

// What is larger is no noise of stamps.
void Timeline::find_noise(Nanos overlap) {
  constexpr Nanos kMostNoise = 20'000;
  if (overlap <= kMostNoise) activity_.clock.noise = std::max(activity_.clock.noise, overlap);
}

// A copy from host to host is reported like the others, but is no device's work.
bool Timeline::on_device(const DeviceOperation& operation) const {
  return operation.kind != OperationKind::Copy || shapes_[operation.shape].transfer != TransferKind::HtoH;
}

// No gap can begin before the earliest of the devices' ends any more.
void Timeline::trim_logs() {
  Nanos earliest = std::numeric_limits<Nanos>::max();
  for (const DeviceTrack& device : devices_) earliest = std::min(earliest, device.sweep.end());
  log_.trim(earliest);
  overhead_.trim(earliest);
}

// What had to end before the operation could start.
Waited Timeline::waited_for(const HostOperation* call, u32 stream) {
  Waited waited{tracks_[stream].end(), Behind::Operations, kNone};
  if (!call || call->answered) return waited;
  window_.for_each_wait(*call, [&](u32 sequence) { add_wait(sequence, waited, 0); });
  return waited;
}

// Of what no device reports only the begin is known: when what it waited for had ended, which had then begun and so came
// before.
void Timeline::add_wait(u32 sequence, Waited& waited, unsigned depth) {
  constexpr unsigned kMostInARow = 64;
  HostOperation* const before = window_.find(sequence);
  if (!before) return;
  if (!is_reported(before->kind)) {
    waited.behind = before->kind == OperationKind::HostFunction ? Behind::HostFunction : Behind::MemoryValue;
    if (before->device_end == 0 && depth < kMostInARow) {
      Waited own{before->end, Behind::Operations, kNone};
      window_.for_each_wait(*before, [&](u32 earlier) { add_wait(earlier, own, depth + 1); });
      before->device_end = own.until;
    }
  }
  if (before->device_end < waited.until) return;
  waited.until = before->device_end;
  waited.device = before->stream < host_devices_.size() ? host_devices_[before->stream] : kNone;
}

void Timeline::find_gap(const DeviceOperation& operation, const Joined& joined, Waited waited, u32 depth) {
  DeviceTimes& times = activity_.devices[operation.device];
  DeviceTrack& state = devices_[operation.device];
  const Nanos idle = state.sweep.idle_before(operation.start);
  if (idle > 0) {
    IdleGap gap;
    gap.device = times.device, gap.begin = state.sweep.end(), gap.end = operation.start;
    gap.ended_by = static_cast<u8>(operation.kind);
    const GapContext context{gap,    state.newest, window_.find(state.newest_call), operation, joined.call,
                             waited, depth,        intake_.clock_error(),           &overhead_};
    const Nanos usual = waited.behind == Behind::Operations ? 0 : state.dispatch.usual(operation.kind);
    divide_gap(context, log_, usual, division_);
    state.dispatch.add(operation.kind, division_.of(IdleCause::Dispatch));
    gap.parts = division_.parts();
    gap.call = division_.call_to_blame();
    if (joined.call) gap.origin = joined.call->stack;
    log_gap(gap);
    if (state.lost.hold(gap, division_.pieces())) {
      const Nanos half = state.lost.half();
      give_up_unheard(half);
      settle_gaps(operation.device, half);
    }
  }
  const bool newest = operation.end >= state.sweep.end();
  if (!state.sweep.add(times, class_of(operation), operation.start, operation.end)) ++activity_.join.late;
  if (newest) {
    state.newest = operation;
    state.newest_call = joined.sequence;
  }
}

// Before then a device cannot have begun with it.
Nanos Timeline::earliest_start(const HostOperation& call) const {
  Nanos earliest = call.begin;
  if (call.stream < host_ends_.size()) earliest = std::max(earliest, host_ends_[call.stream]);
  window_.for_each_wait(call, [&](u32 sequence) {
    if (const HostOperation* before = window_.find(sequence)) earliest = std::max(earliest, before->device_end);
  });
  return earliest;
}

// Nothing was heard of that operation, nor perhaps of others after it; `end`: when the next of its stream began that was
// told of.
void Timeline::lost_before(const HostOperation& first, Nanos end) {
  const i32 ordinal = targets_.device_of(window_.streams().context(first.stream));
  const Nanos begin = earliest_start(first);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (ordinal < 0 || activity_.devices[i].device == ordinal) devices_[i].lost.may_have_run(begin, end);
  }
}

// What nothing was heard of by now counts as lost for the gaps that end by `until`.
void Timeline::give_up_unheard(Nanos until) {
  window_.for_each_unheard([&](const HostOperation& call) { lost_before(call, until); });
}

void Timeline::settle_gaps(u32 device, Nanos until) {
  DeviceTimes& times = activity_.devices[device];
  devices_[device].lost.settle(until, [&](const LostWork::Held& held, bool unknown) {
    const IdleGap& gap = held.gap;
    if (!unknown) {
      count_parts(times, held);
      devices_[device].kept_dispatch.add(static_cast<OperationKind>(gap.ended_by),
                                         gap.parts[static_cast<unsigned>(IdleCause::Dispatch)]);
      keep_gap(times, gap);
      if (witness_) witness_->idled(gap);
      entry_at(facts_.stacks, gap.origin).idle_ns += gap.length();
      return;
    }
    activities_.add(gap.begin, gap.end, Activity::Unknown);
    ++times.unknown_gaps;
    times.unknown_ns += gap.length();
    times.idle_ns -= std::min(times.idle_ns, gap.length());
  });
}

void Timeline::count_parts(DeviceTimes& times, const LostWork::Held& held) {
  ++times.gaps;
  const auto add = [](IdleSum& sum, Nanos length) {
    ++sum.count;
    sum.total_ns += static_cast<u64>(length);
  };
  for (unsigned i = 0; i < kIdleCauses; ++i) {
    if (held.gap.parts[i] != 0) add(times.causes[i], held.gap.parts[i]);
  }
  auto& by_call = times.causes_by_call;
  for (const GapDivision::Piece& piece : held.pieces) {
    if (piece.call == 0) continue;
    const auto same = [&](const IdleByCall& known) { return known.call == piece.call && known.cause == piece.cause; };
    auto known = std::find_if(by_call.begin(), by_call.end(), same);
    if (known == by_call.end()) known = by_call.insert(known, {piece.call, piece.cause, {}});
    add(known->sum, piece.length);
  }
}

// Dispatch beyond ten times what is usual in this run is none: what it was is not known.
void Timeline::limit_dispatch() {
  DispatchTimes all;
  for (const DeviceTrack& device : devices_) all.add(device.kept_dispatch);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceTimes& times = activity_.devices[i];
    IdleSum& dispatch = times.causes[static_cast<unsigned>(IdleCause::Dispatch)];
    IdleSum& unknown = times.causes[static_cast<unsigned>(IdleCause::Unknown)];
    for (unsigned k = 0; k < 4; ++k) {
      const auto kind = static_cast<OperationKind>(k);
      const IdleSum beyond = devices_[i].kept_dispatch.beyond(kind, all.limit(kind));
      dispatch.total_ns -= beyond.total_ns;
      unknown.total_ns += beyond.total_ns;
      unknown.count += beyond.count;
    }
    for (IdleGap& gap : times.longest) {
      Nanos& part = gap.parts[static_cast<unsigned>(IdleCause::Dispatch)];
      const Nanos beyond = part - all.limit(static_cast<OperationKind>(gap.ended_by));
      if (beyond <= 0) continue;
      part -= beyond;
      gap.parts[static_cast<unsigned>(IdleCause::Unknown)] += beyond;
    }
  }
}

void Timeline::keep_gap(DeviceTimes& times, const IdleGap& gap) {
  auto& longest = times.longest;  // a heap with the shortest on top
  if (longest.size() == DeviceTimes::kGapsKept && !longer(gap, longest.front())) return;
  if (longest.size() == DeviceTimes::kGapsKept) {
    std::pop_heap(longest.begin(), longest.end(), longer);
    longest.back() = gap;
  } else {
    longest.push_back(gap);
  }
  std::push_heap(longest.begin(), longest.end(), longer);
}

// For the window of the call: its operation is counted where it started.
void Timeline::count_answer(const HostOperation& call) {
  if (call.target == kNone) return;
  if (call.kind == OperationKind::Kernel) ++facts_.kernels[call.target].answered;
  if (call.kind != OperationKind::Copy && call.kind != OperationKind::Memset) return;
  ++facts_.copies[call.target].answered;
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
      const Intake::Node node = intake_.node(operation.detail, operation.graph);
      target = targets_.kernel_of(shape, context, {operation.detail, node.node, node.exec});
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
  activity_.join.nodes_in_doubt += kernel.unjoined;
  kernel.times.durations.add(static_cast<u64>(operation.end - operation.start));
  kernel.started += joined.call && !joined.call->answered && joined.call->kind == OperationKind::Kernel;
  if (shape.registers == 0 || kernel.shape.function == kNone) return target;
  // What runs was compiled: of PTX the function's own facts may not tell.
  TimelineFunction& function = facts_.functions[kernel.shape.function];
  if (function.registers >= 0) return target;
  function.registers = static_cast<i32>(shape.registers);
  function.local_bytes = static_cast<i32>(shape.local_bytes);
  return target;
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

// The newest division is the gap's.
void Timeline::log_gap(const IdleGap& gap) {
  Nanos at = gap.begin;
  for (const GapDivision::Piece& piece : division_.in_order()) {
    activities_.add(at, at + piece.length, activity_in_gap(piece.cause), piece.call);
    at += piece.length;
  }
}

void Timeline::count_copy(const DeviceOperation& operation, const Joined& joined) {
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
  ++group.count;
  group.bytes += operation.detail;
  group.device_ns += static_cast<u64>(operation.end - operation.start);
  if (!joined.call || joined.call->answered || in_graph) return;
  ++group.started;
  group.started_bytes += operation.detail;
}

void Timeline::count_wait(const DeviceOperation& operation, const HostOperation& call, u64 gap, u32 depth) {
  const u64 api = static_cast<u64>(call.end - call.begin);
  const u64 latency = operation.start > call.begin ? static_cast<u64>(operation.start - call.begin) : 0;
  if (call.kind == OperationKind::Graph && call.target != kNone) {
    GraphTimes& times = graph_times(call.target);
    ++times.replays;
    times.latency_ns += latency;
    times.gap_ns += gap;
  }
  if (call.kind != OperationKind::Kernel || call.target == kNone) return;
  LaunchTimes& times = facts_.functions[facts_.kernels[call.target].shape.function].waits;
  times.latency.add(latency);
  times.queue_ns += operation.start > call.end ? static_cast<u64>(operation.start - call.end) : 0;
  times.gap_ns += gap;
  if (operation.queued != 0) {
    times.to_queued_ns += operation.queued > call.begin ? static_cast<u64>(operation.queued - call.begin) : 0;
    times.in_buffer.add(static_cast<u64>(operation.submitted - operation.queued));
    times.to_start.add(static_cast<u64>(operation.start - operation.submitted));
  }
  times.short_kernels += static_cast<u64>(operation.end - operation.start) < api;
  if (depth >= LaunchTimes::kFullQueue && api > kLongCall) {
    ++times.blocked;
    times.blocked_ns += api;
  }
}

GraphTimes& Timeline::graph_times(u32 graph) {
  if (graph >= facts_.graphs.size()) facts_.graphs.resize(graph + 1u);
  return facts_.graphs[graph];
}

// Nodes come in the order of their starts, so the first begins the replay.
void Timeline::count_graph(const DeviceOperation& operation, const HostOperation& call) {
  if (call.target == kNone) return;
  GraphTimes& times = graph_times(call.target);
  if (operation.kind != OperationKind::Graph) ++times.nodes;
  const Nanos from = call.answered ? call.device_end : operation.start;
  if (operation.end > from) times.device_ns += static_cast<u64>(operation.end - from);
}

}  // namespace gputrace
