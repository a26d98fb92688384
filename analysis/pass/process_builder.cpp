#include "analysis/pass/process_builder.h"

#include <algorithm>
#include <limits>

#include "analysis/facts/asked_for.h"
#include "analysis/facts/library_rows.h"
#include "analysis/pass/merge_timeline.h"
#include "analysis/read/record_view.h"

namespace gputrace {
namespace {

constexpr std::size_t kMostDefinitions = 1u << 16;  // calls; further ones count, in the recorded window or not

bool is_call(RecordClass of) { return of == RecordClass::Call || of == RecordClass::Library; }

bool is_operation(const KernelLaunch& launch) { return launch.header.result == 0 && !(launch.flags & kLaunchCaptured); }

// A function that is asked for is loaded then, where code is loaded lazily. One that is there is looked up: cuBLASLt asks for its kernels before each launch,
// in 0.2 to 9 us on an H200.
constexpr Nanos kLookUp = 20'000;

// What a call means for a device that waits.
HostLog::Kind meaning_of(const RecordHeader& record, Nanos length) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::KernelLaunch:
    case RecordType::GraphLaunch:
      return HostLog::Kind::Launch;
    case RecordType::Copy:
    case RecordType::Memset:
      return HostLog::Kind::Copy;
    case RecordType::Sync:
      return HostLog::Kind::Synchronization;
    case RecordType::Alloc:
    case RecordType::Free:
      return HostLog::Kind::Allocation;
    case RecordType::FunctionGet:
      return length < kLookUp ? HostLog::Kind::Other : HostLog::Kind::Module;
    case RecordType::ModuleLoad:
    case RecordType::GraphInstantiate:
      return HostLog::Kind::Module;
    case RecordType::StreamOrder:
      return HostLog::Kind::Order;
    case RecordType::ObjectCall:
      return decode<ObjectCall>(record).what == static_cast<u32>(ObjectAct::Queried) ? HostLog::Kind::Query
                                                                                     : HostLog::Kind::Other;
    default:
      return HostLog::Kind::Other;
  }
}

}  // namespace

ProcessBuilder::ProcessBuilder(const TraceReader& reader, TimeWindow window, Allowance& allowance, ProcessTrace& facts,
                               Witness* witness)
    : reader_(reader),
      sums_(witness == nullptr || witness->wants() != Wanted::Operations),
      meter_(allowance),
      window_(window),
      facts_(facts),
      clock_(reader.clock()),
      functions_(facts.functions, facts.modules, reader.texts(), timeline_),
      graphs_(facts.graphs),
      ledger_(facts),
      tensors_(facts),
      samples_(reader, facts),
      loops_(reader.threads().size()),
      ranges_(reader.texts(), reader.threads().size(), facts),
      xla_(reader.texts(), reader.threads().size(), asked_for(facts, collect::kOps).value_or(true)),
      threads_(reader.threads().size()),
      timeline_(reader, window, allowance, witness),
      code_(reader.texts()) {
  // Room that is asked for at once is touched where it is written; a vector that grows touches twice as much.
  if (sums_) facts.loop_log.events.reserve(std::min<u64>(reader.conservation().stored, LoopLog::kMostEvents));
  facts.library.collected = asked_for(facts, collect::kLibraries).value_or(false);
  if (facts.library.collected) timeline_.collect_libraries();
  for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i].definitions = reader.threads()[i].tid == 0;
  if (facts.dropped != 0 || !facts.damage.empty()) ledger_.certain().begin();
}

TypeSet ProcessBuilder::in_bulk(const TraceReader& reader) {
  TypeSet types;
  for (u16 type = 0; type < TypeSet::kOthers; ++type) {
    const bool of_device = reader.schema().class_of(type) == RecordClass::Device;
    if (of_device && type != static_cast<u16>(RecordType::DeviceStream)) types.add(type);
  }
  return types;
}

[[gnu::noinline]] CallFacts& ProcessBuilder::other_call_facts(u16 id) {
  const bool known = id < calls_by_id_.size() && calls_by_id_[id] != kNone;
  newest_call_facts_ = known ? &facts_.calls[calls_by_id_[id]] : &new_call_facts(id);
  newest_call_ = id;
  return *newest_call_facts_;
}

CallFacts& ProcessBuilder::new_call_facts(u16 id) {
  if (id >= calls_by_id_.size()) calls_by_id_.resize(id + 1u, kNone);
  calls_by_id_[id] = static_cast<u32>(facts_.calls.size());
  CallFacts& made = facts_.calls.emplace_back();
  made.id = id;
  if (const TraceCall* known = reader_.schema().call(id)) {
    made.name = known->name;
    made.variant = known->variant;
    made.level = known->level;
  } else {
    made.name = made.variant = "call " + std::to_string(id);
    made.level = "unknown";
  }
  return made;
}

// The definitions come from all threads; some of their records tell which. nullptr: not told, so nothing is known of
// nesting.
ProcessBuilder::ThreadState* ProcessBuilder::caller_of(const RecordHeader& record) {
  u32 tid = 0;
  if (record.type == static_cast<u16>(RecordType::ModuleLoad)) tid = decode<ModuleLoad>(record).thread;
  if (record.type == static_cast<u16>(RecordType::FunctionGet)) tid = decode<FunctionGet>(record).thread;
  if (tid == 0) return nullptr;
  for (std::size_t i = threads_.size(); i-- > 0;) {
    const ThreadInfo& known = reader_.threads()[i];
    const bool lived = known.begin <= record.end && (known.end == 0 || known.end >= record.begin);
    if (static_cast<u32>(known.tid) == tid && lived) return &threads_[i];
  }
  return nullptr;
}

void ProcessBuilder::count_ended(const EndedCall& ended) {
  if (!sums_) return;
  if (ended.lane != kNone) ++threads_[ended.lane].calls;
  CallFacts& call = call_facts(ended.call);
  ++call.calls;
  call.self_ns += ended.self_ns;
  call.durations.add(ended.duration_ns);
  if (ended.result == 0) return;
  results_ += ++call.results[ended.result] == 1;
  if (ended.stack != 0) call.error_origins.emplace(ended.result, ended.stack);
  if (!is_plain_answer(call.level, call.name, ended.result)) ++call.errors;
}

void ProcessBuilder::count_call(Moment& at) {
  const RecordHeader& record = at.record;
  if (record.call == 0) {
    at.first_of_call = false;
    return;
  }
  ThreadState& thread = at.thread;
  at.first_of_call = is_new_call(thread, record);
  note_call(thread, record);
  if (!at.first_of_call) return;
  ThreadState* caller = at.definitions ? caller_of(record) : &thread;
  if (caller) {
    samples_.called(static_cast<u32>(caller - threads_.data()), at.begin, at.end);
    tell_call(at, *caller);
  }
  const u64 self = caller ? caller->nesting.self_time(at.begin, at.end) : at.duration();
  if (!at.counted) return;
  const u32 lane = caller ? static_cast<u32>(caller - threads_.data()) : kNone;
  const EndedCall call{at.begin, self, at.duration(), record.result, caller ? caller->stack : 0, lane, record.call};
  const bool unsure = !facts_.window.empty() && at.definitions;  // those are written outside of the window too
  if (unsure && definitions_.size() < kMostDefinitions) return definitions_.push_back(call);
  if (!unsure) count_in_span(at.begin, at.end);
  count_ended(call);
}

void ProcessBuilder::count_in_span(Nanos begin, Nanos end) {
  if (facts_.end == 0 || begin < facts_.begin) facts_.begin = begin;
  facts_.end = std::max(facts_.end, end);
}

void ProcessBuilder::tell_call(Moment& at, const ThreadState& caller) {
  const auto type = static_cast<RecordType>(at.record.type);
  at.call_untold = type == RecordType::KernelLaunch && is_operation(*RecordView<KernelLaunch>(at.record));
  if (!at.call_untold) tell_other_call(at, caller);
}

// Of any call but a launch that gives a kernel to a device: its operation tells of it.
[[gnu::noinline]] void ProcessBuilder::tell_other_call(const Moment& at, const ThreadState& caller) {
  const CallSort sort = sort_of(at.record.call);
  if (sort == CallSort::DeviceAddressOfHost) loops_.host_sees_device_memory();
  const HostLog::Kind kind =
      sort == CallSort::Library ? HostLog::Kind::Library : meaning_of(at.record, at.end - at.begin);
  timeline_.called(static_cast<u32>(&caller - threads_.data()), at.begin, at.end, at.record.call, kind, caller.stack);
}

// Look-ups come before insertions throughout: emplace makes a node first, and most handles are known.
u32 ProcessBuilder::context_index(u64 handle) {
  const auto known = contexts_by_handle_.find(handle);
  if (known != contexts_by_handle_.end()) return known->second;
  const u32 index = static_cast<u32>(facts_.contexts.size());
  const auto foreseen = foreseen_devices_.find(handle);
  facts_.contexts.push_back({handle, foreseen == foreseen_devices_.end() ? -1 : foreseen->second});
  contexts_by_handle_.emplace(handle, index);
  timeline_.context_came(facts_.contexts.back().device);
  return index;
}

void ProcessBuilder::context_is_on(u32 context, i32 device) {
  facts_.contexts[context].device = device;
  timeline_.context_is_on(context, device);
}

u32 ProcessBuilder::cached_context_index(u64 handle) {
  if (handle == last_context_handle_ && last_contexts_version_ == contexts_version_) return last_context_;
  last_context_ = context_index(handle);
  last_context_handle_ = handle;
  last_contexts_version_ = contexts_version_;
  return last_context_;
}

i32 ProcessBuilder::device_of(u32 context) const { return facts_.contexts[context].device; }

void ProcessBuilder::foresee(const RecordHeader& record) {
  if (record.type != static_cast<u16>(RecordType::ContextFacts)) return;
  const auto facts = decode<ContextFacts>(record);
  foreseen_devices_.emplace(facts.context, facts.device);
}

bool ProcessBuilder::spent() {
  if (--until_look_ != 0) [[likely]]
    return false;
  return look_at_allowance();
}

// Tables that grow with what is different: each entry is rows in reports.
[[gnu::noinline]] bool ProcessBuilder::look_at_allowance() {
  constexpr u32 kTablesEvery = 8;
  until_look_ = kLookEvery;
  if (++looks_ % kTablesEvery == 0)
    meter_.things(facts_.calls.size() + facts_.modules.size() + facts_.functions.size() + facts_.contexts.size() +
                  facts_.kernels.size() + facts_.copies.size() + facts_.pools.size() + facts_.device_memory.size() +
                  facts_.graphs.size() + facts_.devices.size() + facts_.tensors.size() + facts_.lines.origins.size() +
                  xla_.count() + results_);
  const bool spent = meter_.spent(kLookEvery);
  facts_.records += spent ? kLookEvery - 1 : kLookEvery;  // the one that is asked for is left out then
  return spent;
}

[[gnu::flatten]] void ProcessBuilder::add(std::span<const RecordStream::Span> runs, const RecordStream& stream) {
  for (const RecordStream::Span& run : runs) {
    if (run.bulk) [[unlikely]] {
      if (!add_bulk(run, stream)) return;
      continue;
    }
    for (const u8* at = run.begin; at != run.end;) {
      const auto& record = *reinterpret_cast<const RecordHeader*>(at);
      if (spent()) return;
      if (record.type != static_cast<u16>(RecordType::KernelLaunch)) [[unlikely]]
        add(record, run, stream);
      else if (!add_usual_launch(record, run.thread)) [[unlikely]]
        add_launch(record, run, stream);
      at += record.size;
    }
  }
}

// False: the allowance is spent.
[[gnu::noinline]] bool ProcessBuilder::add_bulk(const RecordStream::Span& run, const RecordStream& stream) {
  if (meter_.spent(run.records)) return false;
  facts_.records += run.records;
  timeline_.device(run.begin, run.end, stream.chunk(run));
  return true;
}

// What is told by neither a call nor a definition. False: the record is one of those.
bool ProcessBuilder::add_told(const RecordHeader& record, u32 thread) {
  const auto at = [&] { return clock_.nanos(record.begin); };
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::DeviceStream: {  // told with its context, which is the pass's to number
      const auto value = decode<DeviceStream>(record);
      timeline_.device_stream(value, context_index(value.context_handle));
      return true;
    }
    case RecordType::Stack:
      return on_stack(decode<Stack>(record), thread), true;
    case RecordType::CapturedNode:
      return graphs_.captured(decode<CapturedNode>(record), threads_[thread].stack), true;
    case RecordType::Operation:
      return on_operation(decode<Operation>(record), thread), true;
    case RecordType::Nvtx:
      return on_nvtx(decode<Nvtx>(record), thread), true;
    case RecordType::TensorMemory:
      return tensors_.changed(decode<TensorMemory>(record), thread, threads_[thread].stack, at()), true;
    case RecordType::Sample: {
      const Nanos time = at();
      return samples_.sample(decode<Sample>(record), time, time >= window_.from && time < window_.to), true;
    }
    case RecordType::ThreadUse: {
      const auto value = decode<ThreadUse>(record);
      return samples_.thread_use(value, at(), reader_.texts().find(value.name)), true;
    }
    case RecordType::FileUse: {
      const auto value = decode<FileUse>(record);
      return samples_.file_use(value, reader_.texts().find(value.path)), true;
    }
    case RecordType::WaitUse:
      return samples_.wait_use(decode<WaitUse>(record)), true;
    case RecordType::OwnWork:
      return on_own_work(record, thread), true;
    case RecordType::Gap:
      return on_loss(decode<Gap>(record), thread), true;
    default:
      return false;
  }
}

ProcessBuilder::Moment ProcessBuilder::moment_of(const RecordHeader& record, u32 thread) {
  const auto [begin, end] = clock_.span(record);
  const bool counted = begin >= window_.from && begin < window_.to;
  return {record, threads_[thread], begin, end, counted, true, threads_[thread].definitions, thread};
}

[[gnu::noinline]] void ProcessBuilder::add_launch(const RecordHeader& record, const RecordStream::Span& run,
                                                  const RecordStream& stream) {
  threads_[run.thread].newest = record.end;
  Moment at = moment_of(record, run.thread);
  count_call(at);
  if (facts_.library.collected && sort_of(record.call) == CallSort::Library)
    return on_library_call(at, stream.chunk(run));
  on_launch(at);
}

[[gnu::noinline]] void ProcessBuilder::add(const RecordHeader& record, const RecordStream::Span& run,
                                           const RecordStream& stream) {
  const auto type = static_cast<RecordType>(record.type);
  const u32 thread = run.thread;
  if (add_told(record, thread)) return;
  threads_[thread].newest = record.end;
  if (!is_call(reader_.schema().class_of(record.type))) return add_definition(record);
  Moment at = moment_of(record, thread);
  if (type == RecordType::Collective) timeline_.collective(thread, at.begin);
  count_call(at);
  if (facts_.library.collected && sort_of(record.call) == CallSort::Library)
    return on_library_call(at, stream.chunk(run));
  switch (type) {
    case RecordType::GraphLaunch:
      return on_graph_launch(at);
    case RecordType::GraphInstantiate:
      return on_instantiate(decode<GraphInstantiate>(record));
    case RecordType::GraphNode:
      return on_graph_node(decode<GraphNode>(record));
    case RecordType::Copy:
      return on_copy(at);
    case RecordType::Memset:
      return on_memset(at);
    case RecordType::Alloc:
      return on_alloc(at);
    case RecordType::Free:
      if (at.counted && at.first_of_call) ++stack_of(at).calls;
      return on_free(at);
    case RecordType::Sync:
      return on_sync(at);
    case RecordType::StreamOrder:
      return on_order(at);
    case RecordType::ObjectCall:
      return on_object(at);
    case RecordType::ModuleLoad:
      return on_module(at);
    case RecordType::FunctionGet:
      return functions_.named(decode<FunctionGet>(record));
    case RecordType::Call:
      return on_plain_call(at);
    default:
      return;
  }
}

void ProcessBuilder::on_sync(const Moment& at) {
  if (!at.counted || !at.first_of_call || at.record.result != 0) return;
  CallFacts& call = call_facts(at.record.call);
  ++call.waits;
  call.wait_ns += at.duration();
  call.waits_by_origin.add(at.thread.stack, at.duration());
  if (at.lane < facts_.threads.size()) facts_.threads[at.lane].wait_ns += at.duration();
  StackTotals& stack = stack_of(at);
  ++stack.calls;
  stack.wait_ns += at.duration();
  const auto value = decode<Sync>(at.record);
  const auto what = static_cast<SyncKind>(value.what);
  loops_.waited(at.lane, what == SyncKind::Event ? value.object : 0, {at.thread.stack, at.duration()});
  if (value.header.result != 0) return;
  log(at, LoopKind::Wait, value.what);
  const u64 stream = what == SyncKind::Stream ? value.object : 0;
  timeline_.waited(at.lane, at.begin, at.end, {what, value.object, stream_of(at, stream, value.context, value.flags)});
}

// It asked, and was told that all is done.
void ProcessBuilder::on_query(const Moment& at, const ObjectCall& value) {
  if (!at.first_of_call || at.definitions) return;
  const bool event = static_cast<ObjectKind>(value.kind) == ObjectKind::Event;
  const StreamName stream = event ? StreamName{} : stream_of(at, value.object, value.parent, 0);
  timeline_.waited(at.lane, at.begin, at.end, {event ? SyncKind::Event : SyncKind::Stream, value.object, stream});
}

void ProcessBuilder::on_loss(const Gap& value, u32 thread) {
  set_origin(threads_[thread], 0);  // the next one may be among what was lost
  threads_[thread].told = {};
  xla_.lost(thread);
  threads_[thread].told_lost += value.count;
  ranges_.lost(thread);
  timeline_.ranges_lost(thread, clock_.nanos(value.header.begin));
  ledger_.certain().lost(clock_.nanos(value.header.begin), clock_.nanos(value.header.end));
}

// When records of allocations may have been lost, as far as Gap records do not tell: after a thread's newest record; at any time
// where that is not known either.
void ProcessBuilder::find_losses() {
  constexpr Nanos kEver = std::numeric_limits<Nanos>::max();
  const auto full = static_cast<u32>(DropReason::RingFull), alone = static_cast<u32>(DropReason::NoSidecar);
  u64 dated = 0;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto& dropped = reader_.threads()[i].counters.dropped;
    const u64 lost = dropped[full] + dropped[alone];
    dated += lost;
    if (lost > threads_[i].told_lost)
      ledger_.certain().lost(threads_[i].newest ? clock_.nanos(threads_[i].newest) : -kEver, kEver);
  }
  if (dated < facts_.dropped || !facts_.damage.empty()) ledger_.certain().lost(-kEver, kEver);
}

// Which library launched a kernel: evidence for its category where its name tells nothing.
void ProcessBuilder::name_callers() {
  for (const LibraryUse& use : facts_.library.uses) {
    const LibraryRow& row = facts_.library.rows[use.row];
    const u32 function = facts_.kernels[use.kernel].shape.function;
    if (function == kNone || use.launches == 0) continue;
    const bool convolution = row.shape.kind == LibraryKind::Convolution;
    facts_.functions[function].caller = convolution ? "cuDNN convolution" : library_of(library_call_name(facts_, row));
  }
}

void ProcessBuilder::finish() {
  for (ThreadState& thread : threads_) set_origin(thread, 0);
  for (Launched& known : recent_launches_) count_launches(known);
  facts_.records += kLookEvery - until_look_;
  for (const EndedCall& call : definitions_) {
    if (call.begin >= facts_.begin && call.begin < facts_.end) count_ended(call);
  }
  for (std::size_t i = 0; i < std::min(threads_.size(), facts_.threads.size()); ++i)
    facts_.threads[i].calls += threads_[i].calls;
  graphs_.finish([this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
  facts_.lines.replayed = replayed_.take();
  facts_.loops = loops_.finish();
  tensors_.finish();
  forget_untold_frames();
  xla_.finish(facts_.lines);
  facts_.xla_compiling = xla_.take_compiled();
  if (xla_.any()) {  // they are the operations of a process without PyTorch
    std::erase_if(facts_.not_collected,
                  [](const auto& entry) { return entry.first == "ops" && entry.second.rfind("no PyTorch", 0) == 0; });
  }
  find_losses();
  ledger_.finish();
  merge_timeline(timeline_.finish(), facts_);
  samples_.finish();
  name_callers();
  code_.link(facts_.modules, facts_.functions);
  facts_.clock_error =
      facts_.end ? reader_.clock().error_ns(reader_.threads().empty() ? 0 : reader_.last_health()) : -1;
}

}  // namespace gputrace
