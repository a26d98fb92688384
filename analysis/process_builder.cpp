#include "analysis/process_builder.h"

#include <algorithm>

#include "analysis/library_rows.h"

namespace gputrace {
namespace {

constexpr u16 kNcclInProgress = 7;  // of a communicator that does not block
constexpr u16 kNotReady = 600;      // what a query answers while work is in flight: an answer, no error
constexpr u32 kBatchMember = 1u << 18;

bool is_library_record(RecordType type) { return type >= RecordType::Matmul && type <= RecordType::Collective; }
bool is_call_record(RecordType type) {
  return (static_cast<u16>(type) >= 1 && static_cast<u16>(type) <= 14) || is_library_record(type);
}
bool is_device_record(RecordType type) { return static_cast<u16>(type) >= 64 && static_cast<u16>(type) <= 78; }

TransferKind transfer_kind(u8 kind) {
  switch (static_cast<CopyKind>(kind)) {
    case CopyKind::HtoD:
      return TransferKind::HtoD;
    case CopyKind::DtoH:
      return TransferKind::DtoH;
    case CopyKind::DtoD:
      return TransferKind::DtoD;
    case CopyKind::PtoP:
      return TransferKind::PtoP;
    case CopyKind::HtoH:
      return TransferKind::HtoH;
    default:
      return TransferKind::Unknown;
  }
}

// What a call means for a device that waits.
HostLog::What meaning_of(RecordType type) {
  switch (type) {
    case RecordType::KernelLaunch:
    case RecordType::GraphLaunch:
      return HostLog::What::Launch;
    case RecordType::Copy:
    case RecordType::Memset:
      return HostLog::What::Copy;
    case RecordType::Sync:
      return HostLog::What::Synchronization;
    case RecordType::Alloc:
    case RecordType::Free:
      return HostLog::What::Allocation;
    case RecordType::ModuleLoad:
    case RecordType::FunctionGet:
    case RecordType::GraphInstantiate:
      return HostLog::What::Module;
    case RecordType::StreamOrder:
      return HostLog::What::Order;
    default:
      return HostLog::What::Other;
  }
}

bool on_host(HostMemory memory) { return memory == HostMemory::Pinned || memory == HostMemory::Pageable; }

TransferKind kind_from_places(const MemoryLedger::Place& source, const MemoryLedger::Place& destination) {
  if (source.memory == HostMemory::Unknown || destination.memory == HostMemory::Unknown) return TransferKind::Unknown;
  if (on_host(source.memory)) return on_host(destination.memory) ? TransferKind::HtoH : TransferKind::HtoD;
  if (on_host(destination.memory)) return TransferKind::DtoH;
  const bool peers = source.device >= 0 && destination.device >= 0 && source.device != destination.device;
  return peers ? TransferKind::PtoP : TransferKind::DtoD;
}

}  // namespace

std::size_t ProcessBuilder::ShapeHash::operator()(const KernelShape& shape) const {
  u64 hash = 0x9e3779b97f4a7c15ull;
  const auto mix = [&hash](u64 value) {
    hash = (hash ^ value) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  };
  mix(static_cast<u64>(shape.function) << 32 | shape.context);
  mix(static_cast<u64>(shape.grid[0]) << 32 | shape.block[0]);
  mix(static_cast<u64>(shape.grid[1]) << 32 | shape.block[1]);
  mix(static_cast<u64>(shape.grid[2]) << 32 | shape.block[2]);
  mix(static_cast<u64>(shape.dynamic_shared) << 32 | shape.cluster[0] << 20 | shape.cluster[1] << 10 |
      shape.cluster[2]);
  return hash;
}

ProcessBuilder::ProcessBuilder(const TraceReader& reader, TimeWindow window, ProcessTrace& facts)
    : reader_(reader),
      window_(window),
      facts_(facts),
      clock_(reader.clock()),
      functions_(facts.functions, facts.modules, reader.texts()),
      graphs_(facts.graphs),
      ledger_(facts),
      loops_(reader.threads().size()),
      threads_(reader.threads().size()),
      timeline_(reader, window, facts, *this),
      libraries_(reader.threads().size(), facts.library),
      code_(reader.texts()) {
  const auto collect = facts.options.find("collect");
  facts.library.collected =
      collect != facts.options.end() && ("," + collect->second + ",").find(",libs,") != std::string::npos;
  if (facts.library.collected) timeline_.set_visitor(this);
}

CallFacts& ProcessBuilder::call_facts(u16 id) {
  if (id >= calls_by_id_.size()) calls_by_id_.resize(id + 1u, kNone);
  u32& index = calls_by_id_[id];
  if (index != kNone) return facts_.calls[index];
  index = static_cast<u32>(facts_.calls.size());
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

void ProcessBuilder::count_call(Moment& at) {
  const RecordHeader& record = at.record;
  if (record.call == 0 || !is_call_record(static_cast<RecordType>(record.type))) {
    at.first_of_call = false;
    return;
  }
  ThreadState& thread = at.thread;
  at.first_of_call =
      thread.last_call != record.call || thread.last_begin != record.begin || thread.last_end != record.end;
  thread.last_call = record.call;
  thread.last_begin = record.begin;
  thread.last_end = record.end;
  if (!at.first_of_call) return;
  ThreadState* caller = at.definitions ? caller_of(record) : &thread;
  if (caller) {
    timeline_.called(static_cast<u32>(caller - threads_.data()), at.begin, at.end, record.call,
                     meaning_of(static_cast<RecordType>(record.type)));
  }
  const u64 self = caller ? caller->nesting.self_time(at.begin, at.end) : at.duration();
  if (!at.counted) return;
  if (facts_.end == 0 || at.begin < facts_.begin) facts_.begin = at.begin;
  facts_.end = std::max(facts_.end, at.end);
  CallFacts& call = call_facts(record.call);
  ++call.calls;
  call.self_ns += self;
  call.durations.add(at.duration());
  if (record.result == 0) return;
  ++call.results[record.result];
  const bool begun = record.result == kNcclInProgress && call.level == "library" && call.name.rfind("nccl", 0) == 0;
  if (record.result != kNotReady && !begun) ++call.errors;
}

// Look-ups come before insertions throughout: emplace makes a node first, and most handles are known.
u32 ProcessBuilder::context_index(u64 handle) {
  const auto known = contexts_by_handle_.find(handle);
  if (known != contexts_by_handle_.end()) return known->second;
  const u32 index = static_cast<u32>(facts_.contexts.size());
  const auto foreseen = foreseen_devices_.find(handle);
  facts_.contexts.push_back({handle, foreseen == foreseen_devices_.end() ? -1 : foreseen->second});
  contexts_by_handle_.emplace(handle, index);
  return index;
}

i32 ProcessBuilder::device_of(u32 context) const { return facts_.contexts[context].device; }

void ProcessBuilder::foresee(const RecordHeader& record) {
  if (record.type != static_cast<u16>(RecordType::ContextFacts)) return;
  const auto facts = decode<ContextFacts>(record);
  foreseen_devices_.emplace(facts.context, facts.device);
}

void ProcessBuilder::add(const RecordHeader& record, u32 thread) {
  ++facts_.records;
  const auto type = static_cast<RecordType>(record.type);
  const bool device = is_device_record(type);
  if (!is_call_record(type) && !device) return add_definition(record);
  const Nanos begin = clock_.nanos(record.begin);
  const Nanos end = record.end <= record.begin ? begin : std::max(begin, clock_.nanos(record.end));
  if (device) return timeline_.device(record, begin, end);
  if (type == RecordType::Collective) timeline_.collective(thread, begin);
  Moment at{record,
            threads_[thread],
            begin,
            end,
            begin >= window_.from && begin < window_.to,
            true,
            reader_.threads()[thread].tid == 0,
            thread};
  count_call(at);
  if (facts_.library.collected && is_library_call(record.call)) return on_library_call(at);
  switch (type) {
    case RecordType::KernelLaunch:
      return on_launch(at);
    case RecordType::GraphLaunch:
      return on_graph_launch(at);
    case RecordType::GraphInstantiate: {
      const auto value = decode<GraphInstantiate>(record);
      return graphs_.instantiated(value,
                                  [this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
    }
    case RecordType::GraphNode: {
      const auto value = decode<GraphNode>(record);
      const u32 function = value.kind == GraphTable::kKernelNode ? functions_.find(value.function) : kNone;
      return graphs_.node(value, function,
                          [this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
    }
    case RecordType::Copy:
      return on_copy(at);
    case RecordType::Memset:
      return on_memset(at);
    case RecordType::Alloc:
      return on_alloc(at);
    case RecordType::Free:
      if (at.counted && decode<Free>(record).kind != static_cast<u32>(AllocKind::Pool)) loops_.spoiled(thread);
      return ledger_.freed(decode<Free>(record), begin);
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
    default:
      return;
  }
}

KernelLaunches& ProcessBuilder::kernel(const KernelShape& shape) {
  if (last_kernel_ != kNone && facts_.kernels[last_kernel_].shape == shape) return facts_.kernels[last_kernel_];
  const auto known = kernels_by_shape_.find(shape);
  if (known != kernels_by_shape_.end()) {
    last_kernel_ = known->second;
  } else {
    last_kernel_ = static_cast<u32>(facts_.kernels.size());
    kernels_by_shape_.emplace(shape, last_kernel_);
    facts_.kernels.emplace_back().shape = shape;
  }
  return facts_.kernels[last_kernel_];
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
    libraries_.launched(at.lane, at.begin, kNone, captured, false);
    return;
  }
  KernelShape shape;
  shape.function = functions_.find(value.function);
  shape.context = context_index(value.context);
  shape.grid[0] = value.grid_x, shape.grid[1] = value.grid_y, shape.grid[2] = value.grid_z;
  shape.block[0] = value.block_x, shape.block[1] = value.block_y, shape.block[2] = value.block_z;
  shape.dynamic_shared = value.dynamic_shared_bytes;
  shape.cluster[0] = value.cluster_x, shape.cluster[1] = value.cluster_y, shape.cluster[2] = value.cluster_z;
  KernelLaunches& group = kernel(shape);
  libraries_.launched(at.lane, at.begin, last_kernel_, captured, true);
  if (captured) {
    ++group.captured;
    return;
  }
  ++group.plain;
  ++facts_.plain_launches;
  if (value.flags & kLaunchCaptureUnknown) ++facts_.launches_unsure;
  facts_.functions[shape.function].launch_calls.add(at.duration());
  loops_.launched(at.lane, last_kernel_, value.stream, at.duration());
  HostOperation operation = operation_of(at, OperationKind::Kernel);
  operation.target = last_kernel_;
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::on_graph_launch(const Moment& at) {
  const auto value = decode<GraphLaunch>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  for (bool& launched : at.thread.launched_since_copy) launched = true;
  at.thread.launched_since_allocation = true;
  if (at.counted) ++facts_.graph_launches;
  loops_.spoiled(at.lane);
  HostOperation operation = operation_of(at, OperationKind::Graph);
  operation.target = graphs_.launched(value.exec, context_index(value.context), at.counted, at.duration());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::replayed(const GraphTable::Node& node, u32 context, u64 times) {
  if (node.kind == GraphTable::kKernelNode) {
    KernelShape shape = node.shape;
    shape.context = context;
    kernel(shape).in_graphs += times;
    return;
  }
  if (node.kind != GraphTable::kCopyNode && node.kind != GraphTable::kMemsetNode) return;
  const bool memset = node.kind == GraphTable::kMemsetNode;
  const TransferKind kind = memset ? TransferKind::Memset : transfer_kind(node.copy_kind);
  const bool device_only = memset || kind == TransferKind::DtoD || kind == TransferKind::PtoP;
  CopyGroup& group = copy_group(kind, device_only ? HostMemory::Device : HostMemory::Unknown, true, device_of(context));
  group.count += times;
  group.in_graphs += times;
  group.bytes += node.bytes * times;
}

CopyGroup& ProcessBuilder::copy_group(TransferKind kind, HostMemory memory, bool asynchronous, i32 device) {
  const u64 key = static_cast<u64>(static_cast<u32>(device)) << 32 | static_cast<u64>(kind) << 16 |
                  static_cast<u64>(memory) << 8 | static_cast<u64>(asynchronous);
  const auto known = copies_by_key_.find(key);
  if (known != copies_by_key_.end()) return facts_.copies[known->second];
  copies_by_key_.emplace(key, static_cast<u32>(facts_.copies.size()));
  CopyGroup& made = facts_.copies.emplace_back();
  made.kind = kind;
  made.memory = memory;
  made.asynchronous = asynchronous;
  made.device = device;
  return made;
}

// What the call said of a side, else what the ledger knows of the address, else pageable: but only if no allocation can
// have been missed.
MemoryLedger::Place ProcessBuilder::place_of(u8 told, u64 address) const {
  const auto kind = static_cast<MemoryKind>(told);
  if (kind == MemoryKind::Pinned) return {HostMemory::Pinned, -1};
  if (kind == MemoryKind::Pageable) return {HostMemory::Pageable, -1};
  if (kind == MemoryKind::Array) return {HostMemory::Device, -1};
  MemoryLedger::Place place = ledger_.find(address);
  if (kind == MemoryKind::Managed) place.memory = HostMemory::Managed;
  if (kind == MemoryKind::Device && place.memory != HostMemory::Managed) place.memory = HostMemory::Device;
  if (place.memory == HostMemory::Unknown && facts_.ledger_complete) place.memory = HostMemory::Pageable;
  return place;
}

void ProcessBuilder::count_transfer(const Moment& at, CopyGroup& group, u64 bytes) {
  ++group.count;
  group.bytes += bytes;
  if (at.first_of_call) group.call_ns += at.duration();
  bool& launched = at.thread.launched_since_copy[static_cast<unsigned>(group.kind)];
  if (launched) ++group.between_launches;
  launched = false;
}

void ProcessBuilder::on_copy(const Moment& at) {
  const auto value = decode<Copy>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  HostOperation operation = operation_of(at, OperationKind::Copy);
  operation.bytes = value.bytes;
  operation.batch_member = !at.first_of_call;
  if (!at.counted) return timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
  const auto source = place_of(value.source_memory, value.source);
  const auto destination = place_of(value.destination_memory, value.destination);
  TransferKind kind = transfer_kind(value.kind);
  if (kind == TransferKind::Unknown) kind = kind_from_places(source, destination);
  HostMemory memory = HostMemory::Unknown;
  if (kind == TransferKind::HtoD || kind == TransferKind::HtoH) memory = source.memory;
  if (kind == TransferKind::DtoH) memory = destination.memory;
  if (kind == TransferKind::DtoD || kind == TransferKind::PtoP) {
    const bool managed = source.memory == HostMemory::Managed || destination.memory == HostMemory::Managed;
    memory = managed ? HostMemory::Managed : HostMemory::Device;
  }
  i32 device = device_of(context_index(value.context));
  if (device < 0) device = destination.device >= 0 ? destination.device : source.device;
  if (kind == TransferKind::DtoH) loops_.copied_to_host(at.lane, value.asynchronous == 0);
  CopyGroup& group = copy_group(kind, memory, value.asynchronous != 0, device);
  count_transfer(at, group, value.bytes);
  if (value.bytes == 0) return;  // no work for a device
  operation.expected = kind != TransferKind::HtoH;
  operation.target = static_cast<u32>(&group - facts_.copies.data());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::on_memset(const Moment& at) {
  const auto value = decode<Memset>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  HostOperation operation = operation_of(at, OperationKind::Memset);
  operation.bytes = value.bytes;
  if (!at.counted) return timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
  const auto place = ledger_.find(value.destination);
  const HostMemory memory = place.memory == HostMemory::Unknown ? HostMemory::Device : place.memory;
  i32 device = device_of(context_index(value.context));
  if (device < 0) device = place.device;
  CopyGroup& group = copy_group(TransferKind::Memset, memory, value.asynchronous != 0, device);
  count_transfer(at, group, value.bytes);
  if (value.bytes == 0) return;
  operation.target = static_cast<u32>(&group - facts_.copies.data());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::on_alloc(const Moment& at) {
  const auto value = decode<Alloc>(at.record);
  const u32 context = context_index(value.context);
  ledger_.allocated(value, value.device >= 0 ? value.device : device_of(context), context, at.end);
  const auto kind = static_cast<AllocKind>(value.kind);
  const bool costly = kind == AllocKind::Device || kind == AllocKind::Managed || kind == AllocKind::Host;
  if (!costly || value.header.result != 0 || !at.counted) return;
  loops_.spoiled(at.lane);
  if (at.thread.launched_since_allocation) {
    AllocationLoop& loop = facts_.allocation_loop;
    if (loop.between_launches++ == 0) loop.first = at.begin;
    loop.last = at.end;
  }
  at.thread.launched_since_allocation = false;
}

void ProcessBuilder::on_sync(const Moment& at) {
  if (!at.counted || !at.first_of_call) return;
  CallFacts& call = call_facts(at.record.call);
  ++call.waits;
  call.wait_ns += at.duration();
  loops_.waited(at.lane);
}

// Which library launched a kernel: evidence for its category where its name tells nothing.
void ProcessBuilder::name_callers() {
  for (const LibraryUse& use : facts_.library.uses) {
    const LibraryRow& row = facts_.library.rows[use.row];
    const u32 function = facts_.kernels[use.kernel].shape.function;
    if (function == kNone || use.launches == 0) continue;
    const std::string& call = library_call_name(facts_, row);
    facts_.functions[function].caller = row.shape.kind == LibraryKind::Convolution ? "cudnn convolution"
                                        : call.rfind("cublas", 0) == 0             ? "cublas"
                                        : call.rfind("nccl", 0) == 0               ? "nccl"
                                                                                   : "";
  }
}

void ProcessBuilder::finish() {
  graphs_.finish([this](const auto& node, u32 context, u64 times) { replayed(node, context, times); });
  timeline_.finish();
  facts_.loops = loops_.finish();
  libraries_.finish();
  name_callers();
  code_.link(facts_.modules, facts_.functions);
  facts_.clock_error =
      facts_.end ? reader_.clock().error_ns(reader_.threads().empty() ? 0 : reader_.last_health()) : -1;
}

}  // namespace gputrace
