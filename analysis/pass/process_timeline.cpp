// ProcessBuilder: what the timeline needs of the calls, and where the facts of device operations are.
#include <algorithm>

#include "analysis/pass/process_builder.h"

namespace gputrace {

HostOperation ProcessBuilder::operation_of(const Moment& at, OperationKind kind) const {
  HostOperation operation;
  operation.begin = at.begin;
  operation.end = at.end;
  operation.thread = at.lane;
  operation.call = at.record.call;
  operation.kind = kind;
  operation.counted = at.counted;
  operation.batch_member = !at.first_of_call;
  return operation;
}

StreamName ProcessBuilder::stream_of(const Moment& at, u64 handle, u64 context, u32 flags) {
  return {context_named(context), handle, (flags & kLaunchPerThread) != 0, at.lane};
}

bool ProcessBuilder::is_library_call(u16 id) {
  if (id >= library_ids_.size()) library_ids_.resize(id + 1u, 0);
  u8& known = library_ids_[id];
  if (!known) {
    const TraceCall* call = reader_.schema().call(id);
    known = call && call->level == "library" ? 2 : 1;
  }
  return known == 2;
}

void ProcessBuilder::on_library_call(const Moment& at) {
  LibraryCalls::Ended call;
  call.thread = at.lane;
  call.call = at.record.call;
  call.name = reader_.schema().call(at.record.call)->name;
  call.result = at.record.result;
  call.begin = at.begin;
  call.end = at.end;
  call.counted = at.counted;
  call.first_of_call = at.first_of_call;
  libraries_.ended(call, at.record);
}

void ProcessBuilder::on_operation(const DeviceOperation& operation, u32, const HostOperation* call, u64) {
  if (operation.kind == OperationKind::Kernel && call && call->kind == OperationKind::Kernel)
    libraries_.executed(call->thread, call->begin, static_cast<u64>(operation.end - operation.start));
}

void ProcessBuilder::on_order(const Moment& at) {
  const auto value = decode<StreamOrder>(at.record);
  timeline_.ordered(value, stream_of(at, value.stream, value.context, value.flags));
}

// A context of that device: the newest one that a call named, else one that stands for all that we do not know.
u32 ProcessBuilder::context_on(i32 device) {
  for (u32 i = static_cast<u32>(facts_.contexts.size()); i-- > 0;) {
    if (facts_.contexts[i].device == device) return i;
  }
  facts_.contexts.push_back({0, device});
  return static_cast<u32>(facts_.contexts.size() - 1);
}

// By the node, else by the symbol; one that nobody named yet is made.
u32 ProcessBuilder::function_named(const DeviceShape& shape, u64 node, u64 exec) {
  const u32 of_node = node ? graphs_.function_of(exec, node) : kNone;
  if (of_node != kNone) {
    if (facts_.functions[of_node].symbol.empty()) facts_.functions[of_node].symbol = std::string(shape.symbol);
    return of_node;
  }
  for (u32 i = static_cast<u32>(facts_.functions.size()); i-- > 0;) {
    if (facts_.functions[i].symbol == shape.symbol && !shape.symbol.empty()) return i;
  }
  facts_.functions.emplace_back().symbol = std::string(shape.symbol);
  return static_cast<u32>(facts_.functions.size() - 1);
}

u32 ProcessBuilder::kernel_of(const DeviceShape& shape, u32 context, u64 node, u64 exec) {
  KernelShape known;
  known.function = function_named(shape, node, exec);
  known.context = context != kNone ? context : context_on(shape.device);
  std::copy(shape.grid, shape.grid + 3, known.grid);
  std::copy(shape.block, shape.block + 3, known.block);
  if (context == kNone) std::copy(shape.cluster, shape.cluster + 3, known.cluster);  // nodes do not tell theirs
  known.dynamic_shared = shape.dynamic_shared;
  return static_cast<u32>(&kernel(known) - facts_.kernels.data());
}

u32 ProcessBuilder::copies_of(const DeviceShape& shape, bool in_graph) {
  HostMemory memory = shape.memory;
  if (in_graph) {  // as replayed() has them
    const bool device_only = shape.transfer == TransferKind::Memset || shape.transfer == TransferKind::DtoD ||
                             shape.transfer == TransferKind::PtoP;
    memory = device_only ? HostMemory::Device : HostMemory::Unknown;
  }
  const CopyGroup& group = copy_group(shape.transfer, memory, in_graph || shape.asynchronous, shape.device);
  return static_cast<u32>(&group - facts_.copies.data());
}

}  // namespace gputrace
