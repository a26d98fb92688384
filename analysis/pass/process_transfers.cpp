// ProcessBuilder: copies, memsets and allocations, and what the nodes of graphs come to.
#include <algorithm>
#include <utility>

#include "analysis/pass/process_builder.h"

namespace gputrace {
namespace {

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

u64 copy_key(TransferKind kind, HostMemory memory, bool asynchronous, i32 device) {
  return static_cast<u64>(static_cast<u32>(device)) << 32 | static_cast<u64>(kind) << 16 |
         static_cast<u64>(memory) << 8 | static_cast<u64>(asynchronous);
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

void ProcessBuilder::replayed(const GraphTable::Node& node, u32 context, u64 times) {
  if (node.kind == GraphTable::kKernelNode) {
    KernelShape shape = node.shape;
    shape.context = context;
    kernel(shape).in_graphs += times;
    if (node.origin != 0) replayed_.add(last_kernel_, node.origin, 0, times);
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
  group.graph_bytes += node.bytes * times;
}

CopyGroup& ProcessBuilder::copy_group(TransferKind kind, HostMemory memory, bool asynchronous, i32 device) {
  const u64 key = copy_key(kind, memory, asynchronous, device);
  const auto known = copies_by_key_.find(key);
  if (known != copies_by_key_.end()) return facts_.copies[known->second];
  copies_by_key_.emplace(key, static_cast<u32>(facts_.copies.size()));
  CopyGroup& made = facts_.copies.emplace_back();
  made.kind = kind;
  made.memory = memory;
  made.asynchronous = asynchronous;
  made.device = device;
  timeline_.copies_came({kind, memory, asynchronous, device});
  return made;
}

// What the call said of a side, else what the ledger knows of the address, else pageable: but only if no allocation can
// have been missed.
MemoryLedger::Place ProcessBuilder::place_of(u8 said, u64 address) const {
  const auto kind = static_cast<MemoryKind>(said);
  if (kind == MemoryKind::Pinned) return {HostMemory::Pinned, -1};
  if (kind == MemoryKind::Pageable) return {HostMemory::Pageable, -1};
  if (kind == MemoryKind::Array) return {HostMemory::Device, -1};
  MemoryLedger::Place place = ledger_.find(address);
  if (kind == MemoryKind::Managed) place.memory = HostMemory::Managed;
  if (kind == MemoryKind::Device && place.memory != HostMemory::Managed) place.memory = HostMemory::Device;
  if (place.memory == HostMemory::Unknown && facts_.ledger_complete) place.memory = HostMemory::Pageable;
  return place;
}

void ProcessBuilder::count_transfer(const Moment& at, CopyGroup& group, u64 bytes, bool part) {
  ++(part ? group.parts : group.count);
  group.bytes += bytes;
  group.bytes_by_origin.add(at.thread.stack, bytes);
  if (at.first_of_call) {
    group.call_ns += at.duration();
    group.time_by_origin.add(at.thread.stack, at.duration());
  }
  StackTotals& stack = stack_of(at);
  stack.calls += at.first_of_call && !part;
  if (group.kind != TransferKind::Memset) stack.copy_bytes += bytes;
  bool& launched = at.thread.launched_since_copy[static_cast<unsigned>(group.kind)];
  if (launched) ++group.between_launches;
  launched = false;
}

void ProcessBuilder::on_copy(const Moment& at) {
  const auto value = decode<Copy>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured)) return;
  if (value.bytes == 0) return;  // a call that has nothing executed
  HostOperation operation = operation_of(at, OperationKind::Copy);
  operation.bytes = value.bytes;
  operation.batch_member = !at.first_of_call;
  if (!at.counted) return timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
  auto source = place_of(value.source_memory, value.source);
  const auto destination = place_of(value.destination_memory, value.destination);
  TransferKind kind = transfer_kind(value.kind);
  if (kind == TransferKind::Unknown) kind = kind_from_places(source, destination);
  // The call's name says a device, the address is pinned memory of the host: unified addressing takes the address's word.
  const bool pinned_source = kind == TransferKind::DtoH && ledger_.find(value.source).memory == HostMemory::Pinned;
  if (pinned_source) source.memory = HostMemory::Pinned;
  if (pinned_source || (kind == TransferKind::HtoD && ledger_.find(value.destination).memory == HostMemory::Pinned))
    kind = TransferKind::HtoH;
  HostMemory memory = HostMemory::Unknown;
  if (kind == TransferKind::HtoD || kind == TransferKind::HtoH) memory = source.memory;
  if (kind == TransferKind::DtoH) memory = destination.memory;
  if (kind == TransferKind::DtoD || kind == TransferKind::PtoP) {
    const bool managed = source.memory == HostMemory::Managed || destination.memory == HostMemory::Managed;
    memory = managed ? HostMemory::Managed : HostMemory::Device;
  }
  i32 device = device_of(context_of(value.stream, value.context));
  if (device < 0) device = destination.device >= 0 ? destination.device : source.device;
  if (kind == TransferKind::DtoH)
    loops_.copied_to_host(at.lane, value.asynchronous == 0, value.bytes, {at.thread.stack, at.duration()});
  if (kind == TransferKind::HtoD && memory == HostMemory::Pinned && value.asynchronous) loops_.copied_from_pinned();
  log(at,
      kind == TransferKind::HtoD   ? LoopKind::ToDevice
      : kind == TransferKind::DtoH ? LoopKind::ToHost
                                   : LoopKind::OtherCopy,
      0);
  CopyGroup& group = copy_group(kind, memory, value.asynchronous != 0, device);
  count_transfer(at, group, value.bytes, false);
  operation.expected = kind != TransferKind::HtoH;
  operation.target = static_cast<u32>(&group - facts_.copies.data());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::on_memset(const Moment& at) {
  const auto value = decode<Memset>(at.record);
  if (value.header.result != 0 || (value.flags & kLaunchCaptured) || value.bytes == 0) return;
  HostOperation operation = operation_of(at, OperationKind::Memset);
  operation.bytes = value.bytes;
  if (value.flags & kLaunchPart) operation.part = std::exchange(at.thread.within_memset, true);
  if (!at.counted) return timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
  const auto place = ledger_.find(value.destination);
  const HostMemory memory = place.memory == HostMemory::Unknown ? HostMemory::Device : place.memory;
  i32 device = device_of(context_of(value.stream, value.context));
  if (device < 0) device = place.device;
  log(at, LoopKind::Memset, 0);
  CopyGroup& group = copy_group(TransferKind::Memset, memory, value.asynchronous != 0, device);
  count_transfer(at, group, value.bytes, operation.part);
  operation.target = static_cast<u32>(&group - facts_.copies.data());
  timeline_.operation(operation, stream_of(at, value.stream, value.context, value.flags));
}

void ProcessBuilder::on_alloc(const Moment& at) {
  const auto value = decode<Alloc>(at.record);
  const u32 context = cached_context_index(value.context);
  ledger_.allocated(value, value.device >= 0 ? value.device : device_of(context), context, at.end,
                    {at.record.call, at.thread.stack, at.thread.launched});
  if (at.counted && value.header.result == 0) {
    StackTotals& stack = stack_of(at);
    stack.calls += at.first_of_call;
    if (static_cast<AllocKind>(value.kind) != AllocKind::VmmReserve) stack.allocated_bytes += value.bytes;
  }
  const auto kind = static_cast<AllocKind>(value.kind);
  const bool costly = kind == AllocKind::Device || kind == AllocKind::Managed || kind == AllocKind::Host;
  if (!costly || value.header.result != 0 || !at.counted) return;
  loops_.spoiled(at.lane);
  facts_.allocation_loop.time_by_origin.add(at.thread.stack, at.duration());
  if (kind == AllocKind::Managed) loops_.host_sees_device_memory();
  if (at.thread.launched_since_allocation) {
    AllocationLoop& loop = facts_.allocation_loop;
    loop.last = at.end;
    loop.launches_at_last = facts_.plain_launches + facts_.graph_launches;
    if (loop.between_launches++ == 0) loop.first = at.begin, loop.launches_at_first = loop.launches_at_last;
  }
  at.thread.launched_since_allocation = false;
}

void ProcessBuilder::on_free(const Moment& at) {
  const auto value = decode<Free>(at.record);
  if (at.counted && at.first_of_call) ++stack_of(at).calls;
  if (at.counted && value.kind != static_cast<u32>(AllocKind::Pool)) {
    loops_.freed(at.lane);
    facts_.allocation_loop.freeing_by_origin.add(at.thread.stack, at.duration());
  }
  ledger_.freed(value, at.begin);
}

}  // namespace gputrace
