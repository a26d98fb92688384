#include "analysis/timeline/intake.h"

#include <algorithm>

namespace gputrace {
namespace {

constexpr std::size_t kMostStates = 32, kMostReasonBytes = 2000;
constexpr u64 kFarAway = 1ull << 61;  // ns: no clock stands there, and sums of two such times still fit
constexpr u32 kMostDevices = 1024;
constexpr Nanos kKeyNoise = 1000;  // CUPTI's stamps of a call may be that much off its clock
constexpr Nanos kMargin = 10'000'000'000;
constexpr Nanos kLongest = 400ll * 86'400 * 1'000'000'000;

u64 stream_key(u32 context, u32 id) { return static_cast<u64>(context) << 32 | id; }

// What the driver needs for the program is the program's, the rest is collection.
IdleCause overhead_cause(u32 kind) {
  switch (static_cast<OverheadKind>(kind)) {
    case OverheadKind::DriverCompiler:
    case OverheadKind::ModuleLoading:
    case OverheadKind::LazyFunctionLoading:
      return IdleCause::ModuleLoad;
    case OverheadKind::CommandBufferFull:
      return IdleCause::QueueFull;
    default:
      return IdleCause::Collection;
  }
}

// Both or none, in their order before the start, which is at `at` on the host's clock.
void convert_stamps(const DeviceTimeline& clock, u64 start, Nanos at, DeviceOperation& operation) {
  const u64 queued = static_cast<u64>(operation.queued), submitted = static_cast<u64>(operation.submitted);
  if (queued == 0 && submitted == 0) return;
  const bool stamped = queued != 0 && queued <= submitted && submitted <= start;
  operation.queued = stamped ? at - clock.length(queued, start) : 0;
  operation.submitted = stamped ? at - clock.length(submitted, start) : 0;
}

}  // namespace

Intake::Intake(const TraceReader& reader, DeviceActivity& activity, DeviceShapes& shapes, LaunchWindow& window,
               OverheadLog& overhead, TimeSpan report)
    : reader_(reader), activity_(activity), shapes_(shapes), window_(window), overhead_(overhead), report_(report) {
  const auto& threads = reader.threads();
  for (u32 i = 0; i < threads.size(); ++i) {
    if (threads[i].tid != 0) threads_by_tid_[static_cast<u32>(threads[i].tid)].push_back(i);
  }
}

// The thread that had that id then.
u32 Intake::thread_index(u32 tid, Nanos at) {
  RecentThread& recent = recent_threads_[tid % recent_threads_.size()];
  if (recent.thread != kNone && recent.tid == tid) [[likely]]
    return recent.thread;
  return look_up(recent, tid, at);
}

[[gnu::noinline]] u32 Intake::look_up(RecentThread& recent, u32 tid, Nanos at) {
  const auto known = threads_by_tid_.find(tid);
  if (known == threads_by_tid_.end()) return kNone;
  const auto& indexes = known->second;
  if (indexes.size() == 1) {
    recent = {tid, indexes.front()};
    return recent.thread;
  }
  for (std::size_t i = indexes.size(); i-- > 1;) {
    if (reader_.clock().nanos(reader_.threads()[indexes[i]].begin) <= at) return indexes[i];
  }
  return indexes.front();
}

// `handled`: between those two the collector had it.
[[gnu::noinline]] bool Intake::add_other(const RecordHeader& record, TimeSpan handled) {
  handled_ = handled.to;
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::DeviceCopy:
      on_transfer(decode<DeviceCopy>(record), OperationKind::Copy);
      break;
    case RecordType::DeviceMemset:
      on_transfer(decode<DeviceMemset>(record), OperationKind::Memset);
      break;
    case RecordType::DeviceGraph:
      on_graph(decode<DeviceGraph>(record));
      break;
    case RecordType::DeviceClock: {
      const auto value = decode<DeviceClock>(record);
      if (value.device == 0 || value.device >= kFarAway) return true;
      const Nanos error = std::max<Nanos>(0, reader_.clock().error_ns(record.begin));
      const Nanos offset = value.realtime ? reader_.clock().realtime(handled.from) - handled.from : 0;
      clock_.add(value.device, handled.from - error, handled.to + error,
                 offset ? static_cast<Nanos>(value.device) - offset : 0,
                 value.source == static_cast<u32>(DeviceClockSource::OfClient));
      return true;
    }
    case RecordType::DeviceGraphNode: {
      const auto value = decode<DeviceGraphNode>(record);
      if (value.id) nodes_[value.id] = {value.node, value.exec};
      if (value.graph) execs_[value.graph] = value.exec;
      return false;
    }
    case RecordType::DeviceState:
      on_state(decode<DeviceState>(record));
      return false;
    case RecordType::DeviceLoss: {
      const auto value = decode<DeviceLoss>(record);
      activity_.lost[std::min<std::size_t>(value.reason, activity_.lost.size() - 1)] += value.count;
      return false;
    }
    case RecordType::DeviceOverhead:
      on_overhead(decode<DeviceOverhead>(record));
      return false;
    case RecordType::DeviceEnvironment:
      if (samples_.size() < kMostWaiting) samples_.push_back({decode<DeviceEnvironment>(record), handled_});
      return false;
    case RecordType::DeviceJit:
      on_jit(decode<DeviceJit>(record));
      return false;
    default:
      return false;
  }
  return is_full();
}

void Intake::on_key(const DeviceApi& record) {
  keys_.append() = {record.start, record.finish, record.correlation, record.thread, record.callback,
                    record.level, handled_};
}

// What every operation has; the rest is the caller's to fill in.
template <typename Record>
DeviceOperation& Intake::put(const Record& record, OperationKind kind) {
  if (!active_) {
    active_ = activity_.collected = true;
    window_.set_active();
    if (!ended_) collecting_ = true;
  }
  const RecentStream& recent = stream_of(static_cast<i32>(record.device), record.context, record.stream);
  Waiting& waiting = batch_.append();
  waiting.handled = handled_;
  DeviceOperation& made = waiting.operation;
  made.start = static_cast<Nanos>(record.start);
  made.end = static_cast<Nanos>(record.finish);
  made.correlation = record.correlation;
  made.stream = recent.stream;
  made.device = recent.device;
  made.graph = record.graph;
  made.kind = kind;
  made.collective = false;
  made.reserved = 0;
  return made;
}

void Intake::on_kernel(const DeviceKernel& record) {
  DeviceOperation& made = put(record, OperationKind::Kernel);
  made.detail = record.graph_node;
  made.queued = static_cast<Nanos>(record.queued);
  made.submitted = static_cast<Nanos>(record.submitted);
  made.shape = shapes_.of(record);
  made.collective = shapes_[made.shape].collective;
}

template <typename Record>
void Intake::on_transfer(const Record& record, OperationKind kind) {
  DeviceOperation& made = put(record, kind);
  made.detail = record.bytes;
  made.queued = 0;
  made.submitted = static_cast<Nanos>(record.graph_node);
  made.shape = shapes_.of(record);
}

void Intake::on_graph(const DeviceGraph& record) {
  DeviceOperation& made = put(record, OperationKind::Graph);
  made.detail = 0;
  made.queued = made.submitted = 0;
  made.shape = shapes_.of_graph(static_cast<i32>(record.device));
}

u32 Intake::device_index(i32 ordinal) {
  for (u32 i = 0; i < activity_.devices.size(); ++i) {
    if (activity_.devices[i].device == ordinal) return i;
  }
  if (activity_.devices.size() == kMostDevices) return kMostDevices - 1;  // a damaged file: no host has as many
  activity_.devices.emplace_back().device = ordinal;
  return static_cast<u32>(activity_.devices.size() - 1);
}

const Intake::RecentStream& Intake::stream_of(i32 ordinal, u32 context, u32 id) {
  const u64 key = stream_key(context, id);
  RecentStream& recent = recent_streams_[id % recent_streams_.size()];
  if (recent.stream == kNone || recent.key != key || recent.ordinal != ordinal) [[unlikely]]
    look_up(recent, ordinal, context, id);
  return recent;
}

[[gnu::noinline]] void Intake::look_up(RecentStream& recent, i32 ordinal, u32 context, u32 id) {
  const u64 key = stream_key(context, id);
  const u32 device = device_index(ordinal);
  const auto [known, added] = streams_by_id_.try_emplace(key, static_cast<u32>(activity_.streams.size()));
  recent = {key, known->second, device, ordinal};
  if (!added) return;
  StreamTimes& made = activity_.streams.emplace_back();
  made.device = ordinal;
  made.context = context;
  made.id = id;
  const auto host = host_by_id_.find(key);
  host_streams_.push_back(kNone);
  if (host == host_by_id_.end()) return;
  set_host_stream(recent.stream, host->second);
  made.handle = window_.streams().handle(host->second);
}

void Intake::add_stream(const DeviceStream& record, u32 context, Nanos handled) {
  handled_ = handled;
  const StreamName name{context, record.stream, record.per_thread != 0, thread_index(record.thread, handled)};
  const u32 host = window_.streams().find(name);
  const u64 key = stream_key(record.context, record.id);
  host_by_id_[key] = host;
  const auto known = streams_by_id_.find(key);
  if (known == streams_by_id_.end()) return;
  set_host_stream(known->second, host);
  activity_.streams[known->second].handle = record.stream;
}

void Intake::set_host_stream(u32 stream, u32 host) {
  u32& known = host_streams_[stream];
  if (known != kNone) --taken_[known];
  known = host;
  if (host >= taken_.size()) taken_.resize(host + 1u);
  ++taken_[host];
}

Intake::Node Intake::node(u64 id, u32 graph) const {
  const auto known = id ? nodes_.find(id) : nodes_.end();
  if (known != nodes_.end()) return known->second;
  const auto exec = id && graph ? execs_.find(graph) : execs_.end();
  return exec == execs_.end() ? Node{} : Node{0, exec->second};
}

void Intake::on_state(const DeviceState& record) {
  const auto state = static_cast<DeviceCollection>(record.state);
  const std::string reason(reader_.texts().find(record.reason).substr(0, kMostReasonBytes));
  if (record.version) activity_.version = record.version;
  collecting_ = state == DeviceCollection::On;
  ended_ = state == DeviceCollection::Ended;
  if (state == DeviceCollection::On) {
    activity_.collected = active_ = true;
    activity_.library = reason;
    activity_.kinds |= record.kinds;
    window_.set_active();
  }
  if (activity_.states.size() < kMostStates) activity_.states.push_back({state, reason});
}

void Intake::on_overhead(const DeviceOverhead& record) {
  if (record.finish < record.start) return;
  if (record.kind != static_cast<u32>(OverheadKind::OwnThread) && held_.size() < OverheadLog::kMost)
    held_.push_back({record.start, record.finish, record.kind, record.thread, handled_});
  for (DeviceOverheadSum& sum : activity_.overhead) {
    if (sum.kind != record.kind) continue;
    ++sum.count;
    sum.total_ns += record.finish - record.start;
    return;
  }
  activity_.overhead.push_back({record.kind, 1, record.finish - record.start});
}

void Intake::on_jit(const DeviceJit& record) {
  if (record.finish < record.start) return;
  const u64 length = record.finish - record.start;
  DeviceJitSum* found = nullptr;
  for (DeviceJitSum& sum : activity_.jit) {
    if (sum.kind == record.kind && sum.operation == record.operation) found = &sum;
  }
  if (!found) found = &activity_.jit.emplace_back(DeviceJitSum{record.kind, record.operation, 0, 0, 0, 0});
  ++found->count;
  found->bytes += record.bytes;
  found->total_ns += length;
  found->max_ns = std::max(found->max_ns, length);
}

[[gnu::flatten]] void Intake::settle_keys() {
  constexpr std::size_t kAhead = 16;
  keys_.for_each<kAhead>([&](const Key& key, const Key& further) {
    window_.expect_keyed(further.correlation);
    if (key.start >= kFarAway || key.finish >= kFarAway) return;
    KeyedCall call;
    call.begin = clock_.nanos(key.start, key.handled);
    if (!clock_.sure_here()) return;
    call.end = call.begin + clock_.length(key.start, key.finish);
    call.correlation = key.correlation;
    call.thread = thread_index(key.thread, call.begin);
    call.callback = key.callback;
    call.runtime = key.level == static_cast<u32>(ApiLevel::Runtime);
    call.jumped = clock_.jumped_here();
    window_.key(call, std::max<Nanos>(0, clock_.error_here()) + kKeyNoise);
  });
  keys_.clear();
}

void Intake::settle_overhead() {
  for (const Held& held : held_) {
    if (held.start == 0 || held.finish >= kFarAway || !clock_.known()) continue;
    OverheadLog::Entry made;
    made.begin = clock_.nanos(held.start, held.handled);
    made.end = made.begin + clock_.length(held.start, held.finish);
    made.thread = held.thread ? thread_index(held.thread, made.begin) : OverheadLog::kAnyThread;
    made.cause = overhead_cause(held.kind);
    overhead_.add(made);
  }
  held_.clear();
}

void Intake::settle_environment() {
  for (const Sample& sample : samples_) {
    const DeviceEnvironment& record = sample.record;
    if (record.at == 0 || record.at >= kFarAway || !clock_.known()) continue;
    const Nanos at = clock_.nanos(record.at, sample.handled);
    if (!report_.holds(at)) continue;
    const i32 ordinal = static_cast<i32>(record.device);
    auto& all = activity_.environment;
    auto known = std::find_if(all.begin(), all.end(), [ordinal](const auto& each) { return each.device == ordinal; });
    if (known == all.end()) {
      if (all.size() == kMostDevices) continue;
      known = all.insert(all.end(), DeviceEnvironmentTimes{});
      known->device = ordinal;
    }
    switch (record.kind) {  // CUpti_ActivityEnvironmentKind
      case 1:
        known->speed(at, record.first, record.second, record.third);
        break;
      case 2:
        known->temperature.add(record.first);
        break;
      case 3:
        known->power.add(record.first);
        known->power.limit = record.second;
        break;
      case 4:
        known->fan.add(record.first);
        break;
      default:
        break;
    }
  }
  samples_.clear();
}

// False: no device did that. An operation has ended when its record is handled, and began in the life of the process;
// both with a margin for clocks that jump.
bool Intake::convert(DeviceOperation& operation, Nanos handled, TimeSpan& ran) {
  const u64 start = static_cast<u64>(operation.start), finish = static_cast<u64>(operation.end);
  const bool sane = start != 0 && start <= finish && finish < kFarAway;
  if (sane) {
    ran.from = clock_.nanos(start, handled);
    ran.to = ran.from + clock_.length(start, finish);
    if (operation.kind == OperationKind::Kernel) convert_stamps(clock_, start, ran.from, operation);
    if (!clock_.known()) return true;
    if (clock_.sure_here() && ran.to <= handled + kMargin && ran.from >= handled - kLongest) return true;
  }
  ++activity_.lost[static_cast<std::size_t>(DeviceLossReason::Impossible)];
  return false;
}

void Intake::finish() {
  batch_ = {}, keys_ = {};  // what is replayed now has their memory
  DeviceClockFacts& facts = activity_.clock;
  facts.anchors = clock_.readings();
  facts.steps = clock_.steps();
  facts.restarts = clock_.restarts();
  facts.largest_step = clock_.largest_step();
  facts.error = clock_.known() ? std::max(clock_.error(), window_.farthest()) : -1;
  activity_.incomplete = activity_.collected && !ended_;
}

}  // namespace gputrace
