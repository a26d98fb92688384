#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <limits>

#include "analysis/replay/what_if.h"

namespace gputrace {
namespace {

constexpr u64 kTrimEvery = 16384;  // operations between two trims of the log

}  // namespace

Timeline::Timeline(const TraceReader& reader, TimeWindow window, Witness* witness)
    : report_(window.of_operations()),
      witness_(witness),
      sums_(witness == nullptr || witness->wants() != Wanted::Operations),
      taped_(witness == nullptr || witness->wants() == Wanted::All),
      counts_plainly_(witness == nullptr),
      activity_(facts_.activity),
      targets_(facts_),
      libraries_(reader.threads().size(), facts_.library),
      shapes_(reader.texts()),
      window_(reader.threads().size()),
      log_(reader.threads().size()),
      recorder_(reader.threads().size(), reader.data_bytes()),
      ranges_(reader.threads().size()),
      intake_(reader, activity_, shapes_, window_, overhead_, report_),
      seen_threads_(reader.threads().size()) {
  if (sums_) activities_.expect(reader.conservation().stored);
}

void Timeline::called(u32 thread, Nanos begin, Nanos end, u16 call, HostLog::Kind kind, u32 origin) {
  if (!intake_.active()) return;
  log_.add(thread, begin, end, call, kind, origin);
  recorder_.called(thread, begin, end, call, kind);
}

[[gnu::flatten]] void Timeline::operation(const HostOperation& operation, const StreamName& stream, bool as_call) {
  if (as_call)
    called(operation.thread, operation.begin, operation.end, operation.call, HostLog::Kind::Launch, operation.stack);
  const u32 host = window_.streams().find(stream);
  HostOperation* const given = window_.add(operation, host);
  if (!given) return;
  if (!given->expected) given->on_device = false;
  if (!intake_.collecting()) given->expected = false;
  if (given->kind == OperationKind::Kernel)
    given->target = targets_.kernel(given->target);
  else if (given->kind == OperationKind::Copy || given->kind == OperationKind::Memset)
    given->target = targets_.copies(given->target);
  put_on_tape(*given);
  if (candidates_.active() && !intake_.taken(host)) candidates_.add(look_of(*given), host);
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
  if (const HostOperation* const given = window_.add(made, streams.find(stream))) put_on_tape(*given);
}

// The newest operation of the window.
void Timeline::put_on_tape(const HostOperation& given) {
  if (!taped_ || !intake_.active() || !given.counted) return;
  recorder_.operation(window_.next() - 1, given, [&](auto&& visit) { window_.for_each_wait(given, visit); });
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

[[gnu::flatten]] Timeline::Stopped Timeline::device(const u8* at, const u8* end, u32 most, TickClock& clock) {
  constexpr std::size_t kAhead = 1024, kLine = 64;  // bytes
  u32 taken = 0;
  for (; at != end && taken != most; ++taken) {
    __builtin_prefetch(at + kAhead);  // another processor decoded it; a step may be two lines wide
    __builtin_prefetch(at + kAhead + kLine);
    const auto& record = *reinterpret_cast<const RecordHeader*>(at);
    if (intake_.add(record, clock)) take_in();
    at += record.size;
  }
  return {at, taken};
}

// For all devices and streams that the intake has numbered.
void Timeline::make_room() {
  devices_.resize(std::max(devices_.size(), activity_.devices.size()));
  tracks_.resize(std::max(tracks_.size(), activity_.streams.size()));
  uncounted_.resize(tracks_.size());
}

[[gnu::noinline]] void Timeline::take_in() {
  make_room();
  intake_.drain(
      [this](const DeviceOperation& operation, const TimeSpan& ran) { reorder_.add(operation, ran, Taker{*this}); });
}

void Timeline::device_stream(const DeviceStream& record, u32 context, Nanos handled) {
  intake_.add_stream(record, context, handled);
}

TimelineFacts Timeline::finish() {
  take_in();
  reorder_.finish(Taker{*this});
  give_up_unheard(std::numeric_limits<Nanos>::max());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceTimes& times = activity_.devices[i];
    devices_[i].sweep.finish(times);
    finish_gaps(static_cast<u32>(i));
  }
  limit_dispatch();
  for (std::size_t i = 0; i < tracks_.size(); ++i) tracks_[i].finish(activity_.streams[i]);
  activity_.join.calls_forgotten = window_.forgotten();
  count_unanswered();
  intake_.finish();
  if (activity_.clock.error >= 0) activity_.clock.error += activity_.clock.noise;
  // Nothing came before a call of CUPTI failed for good: that is no device timing, and the reason is in the states.
  if (activity_.join.operations == 0 && !activity_.states.empty() &&
      activity_.states.back().state == DeviceCollection::Failed)
    activity_.collected = false;
  libraries_.finish();
  replays_ = activity_.collected && taped_;
  if (replays_) why_no_replay_ = why_no_replay(), replayed_copies_ = facts_.copies;
  facts_.activities = activities_.finish();
  facts_.ranges = ranges_.finish();
  facts_.kernel_origins = kernel_origins_.take();
  return std::move(facts_);
}

u64 Timeline::things() const {
  // A stream is rows in four reports, and keeps what it waited for.
  return facts_.kernels.size() + 2 * activity_.streams.size() + facts_.library.rows.size() +
         facts_.library.uses.size() + facts_.library.communicators.size();
}

// A program that is killed takes what CUPTI had not given out yet with it: the newest calls, most of which have no record.
void Timeline::count_unanswered() {
  u64 newest = 0, seen = 0;  // from the end
  for (u32 sequence = window_.next(); sequence-- != window_.oldest();) {
    const HostOperation& call = *window_.find(sequence);
    if (!call.counted) continue;
    activity_.join.untold += call.on_device && !call.answered;
    if (!call.expected) continue;
    ++seen;
    newest += !call.answered;
    if (!call.answered && 2 * newest > seen) unanswered_at_end_ = newest, end_missing_from_ = sequence;
  }
  activity_.join.calls_unanswered += newest;
}

// A run of which more than one operation in a hundred is missing is not that run; but for its end, which may be cut off.
std::string Timeline::why_no_replay() const {
  constexpr u64 kOneIn = 100, kEndIn = 10;
  const JoinCounts& join = activity_.join;
  const u64 end = kEndIn * unanswered_at_end_ <= join.operations ? unanswered_at_end_ : 0;
  const u64 missing = join.calls_unanswered - end + join.not_joined + join.calls_forgotten;
  if (missing * kOneIn <= join.operations + join.calls_unanswered) return {};
  return "more than 1 % of the operations have no device record, or no call";
}

GainFacts Timeline::gains(const KernelChanges& kernels) {
  if (!replays_) return {};
  if (why_no_replay_.empty()) return find_gains(recorder_.finish(end_missing_from_), replayed_copies_, kernels);
  GainFacts none;
  none.why_not = why_no_replay_;
  return none;
}

// The next operation in the order of starts.
[[gnu::flatten]] void Timeline::take(DeviceOperation& operation, u32 keyed) {
  if (since_tied_ == ReorderWindow::kNext && operation.kind == OperationKind::Kernel) [[likely]] {
    HostOperation* const call = window_.find(keyed);
    if (call && is_plain(*call, operation)) [[likely]]
      return take_launched(operation, *call, keyed);
  }
  take_any(operation, keyed);
}

// Nearly all operations: nothing is new about the launch, the kernel, or the stream, and all of it counts.
bool Timeline::is_plain(const HostOperation& call, const DeviceOperation& operation) const {
  return call.kind == OperationKind::Kernel && call.target != kNone && !call.answered && !call.batch_member &&
         call.counted && call.target == shapes_[operation.shape].target &&
         intake_.host_stream(operation.stream) != kNone && report_.holds(operation.start) && counts_plainly_;
}

// What take_any() does of it.
void Timeline::take_launched(DeviceOperation& operation, HostOperation& call, u32 sequence) {
  TimelineKernel& kernel = facts_.kernels[call.target];
  const Joined joined{&call, sequence, call.stack};
  ++activity_.join.operations;
  ++activity_.join.by_key;
  pass(operation, sequence);
  operation.collective |= call.collective != 0;
  Waited waited;
  find_waited(&call, operation.stream, waited);
  StreamTrack& track = tracks_[operation.stream];
  StreamTimes& stream = activity_.streams[operation.stream];
  const u32 depth = track.queued(stream, call.begin, call.end - call.begin, operation.start, true);
  count_launch(operation, call, facts_.functions[kernel.shape.function].waits, waited, depth);
  note_early(operation, call);
  const u64 length = static_cast<u64>(operation.end - operation.start);
  entry_at(facts_.stacks, call.stack).device_ns += length;
  DeviceTimes& times = activity_.devices[operation.device];
  find_gap(times, operation, joined, waited, depth);
  ++times.kernels;
  count_execution(kernel, joined, call.target, length, shapes_[operation.shape]);
  ++kernel.started;
  activities_.add(operation.start, operation.end, operation.collective ? Activity::Collective : Activity::Kernel,
                  call.target, call.begin);
  if (ranges_.any()) ranges_.ran(call.thread, call.begin, operation.start, operation.end, true);
  if (facts_.library.collected) libraries_.executed(call.thread, call.begin, length);
  const bool alone = !call.programmatic && !call.by_order;
  if (alone && track.overlaps(operation.start)) find_noise(track.end() - operation.start);
  track.ran(stream, operation.start, operation.end, alone);
  ++kernel.answered;
  answer(operation, call, sequence);
  if (++since_trim_ % kTrimEvery == 0) trim_logs();
}

[[gnu::noinline]] [[gnu::flatten]] void Timeline::take_any(DeviceOperation& operation, u32 keyed) {
  Joined joined = join(operation, keyed);
  joined.origin = origin_of(operation, joined.call);
  const bool counted = report_.holds(operation.start);
  StreamTrack& track = tracks_[operation.stream];
  HostOperation* const call = joined.call;
  if (call && call->collective && operation.kind == OperationKind::Kernel) operation.collective = true;
  Waited waited;
  find_waited(call, operation.stream, waited);
  StreamTimes& stream = counted ? activity_.streams[operation.stream] : uncounted_[operation.stream];
  u32 depth = 0;
  if (call && !call->answered) {
    depth =
        track.queued(stream, call->begin, call->batch_member ? -1 : call->end - call->begin, operation.start, sums_);
    if (sums_ && counted && call->counted) count_wait(operation, *call, waited, depth);
    if (counted) note_early(operation, *call);
  }
  if (counted) {
    if (witness_) witness_->ran(operation, shapes_[operation.shape], call, activity_);
    if (call) entry_at(facts_.stacks, joined.origin).device_ns += static_cast<u64>(operation.end - operation.start);
    if (on_device(operation)) find_gap(activity_.devices[operation.device], operation, joined, waited, depth);
    if (sums_) count(operation, joined);
  }
  const bool alone = runs_alone(call, operation);
  if (alone && track.overlaps(operation.start)) find_noise(track.end() - operation.start);
  track.ran(stream, operation.start, operation.end, alone);
  if (call) {
    if (!call->answered && call->counted) count_answer(*call);
    answer(operation, *call, joined.sequence);
  }
  if (++since_trim_ % kTrimEvery == 0) trim_logs();
}

void Timeline::answer(const DeviceOperation& operation, HostOperation& call, u32 sequence) {
  recorder_.ran(sequence, operation);
  call.answered = true;
  call.device_end = std::max(call.device_end, operation.end);
  LaunchWindow::Ended& ended = window_.ended(call.stream);
  ended.end = std::max(ended.end, operation.end);
  ended.device = operation.device;
}

// Before it was launched, by more than the clocks may be off.
void Timeline::note_early(const DeviceOperation& operation, const HostOperation& call) {
  if (operation.start >= call.begin) [[likely]]
    return;
  activity_.join.before_call += operation.start < call.begin - intake_.clock_error();
}

[[gnu::noinline]] Targets::NodeNames Timeline::names_of(const DeviceOperation& operation,
                                                        const HostOperation* call) const {
  const Intake::Node node = intake_.node(operation.node(), operation.graph);
  const u64 version = call && call->kind == OperationKind::Graph ? call->bytes : 0;
  return {operation.node(), node.node, node.exec, version};
}

// Whose work it is: a node is that of the line that captured it, not of the one that replays the graph.
u32 Timeline::origin_of(const DeviceOperation& operation, const HostOperation* call) {
  if (!call) return 0;
  if (call->kind != OperationKind::Graph || operation.node() == 0) return call->stack;
  const u32 captured = targets_.origin_of(shapes_[operation.shape], names_of(operation, call));
  return captured != 0 ? captured : call->stack;
}

// Nothing of its stream runs beside it: not so within a graph, a batch or a copy in pieces, nor where a launch asked for it.
bool Timeline::runs_alone(const HostOperation* call, const DeviceOperation& operation) const {
  return call && call->kind == operation.kind && operation.kind != OperationKind::Graph && on_device(operation) &&
         !call->answered && !call->batch_member && !call->programmatic && !call->by_order;
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
[[gnu::noinline]] void Timeline::trim_logs() {
  Nanos earliest = std::numeric_limits<Nanos>::max();
  for (const DeviceTrack& device : devices_) {
    if (device.sweep.begun()) earliest = std::min(earliest, device.sweep.end());
  }
  log_.trim(earliest);
  overhead_.trim(earliest);
}

// What had to end before the operation could start. Not returned: its parts would be read as a whole while they are still being stored.
void Timeline::find_waited(const HostOperation* call, u32 stream, Waited& waited) {
  waited.until = tracks_[stream].end();
  if (!call || call->answered) return;
  window_.for_each_wait(*call, [&](u32 sequence) { add_wait(sequence, waited, 0); });
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
  waited.device = window_.ended(before->stream).device;
}

}  // namespace gputrace
