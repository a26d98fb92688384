// ProcessBuilder: what the timeline needs of the calls, and where the facts of device operations are.
#include <algorithm>

#include "analysis/pass/process_builder.h"

namespace gputrace {

HostOperation ProcessBuilder::operation_of(const Moment& at, OperationKind kind) const {
  HostOperation operation;
  fill(operation, at, kind);
  return operation;
}

void ProcessBuilder::fill(HostOperation& operation, const Moment& at, OperationKind kind) const {
  operation.begin = at.begin;
  operation.end = at.end;
  operation.thread = at.lane;
  operation.call = at.record.call;
  operation.kind = kind;
  operation.counted = at.counted;
  operation.batch_member = !at.first_of_call;
  operation.stack = at.thread.stack;
}

StreamName ProcessBuilder::stream_of(const Moment& at, u64 handle, u64 context, u32 flags) {
  return {context_of(handle, context), handle, (flags & kLaunchPerThread) != 0, at.lane};
}

// Work belongs to its stream's context; that of a default stream is the current one.
u32 ProcessBuilder::context_of(u64 stream, u64 current) {
  const auto created = stream > 2 ? stream_contexts_.find(stream) : stream_contexts_.end();
  return cached_context_index(created == stream_contexts_.end() ? current : created->second);
}

ProcessBuilder::CallSort ProcessBuilder::sort_of(u16 id) {
  if (id >= call_sorts_.size()) call_sorts_.resize(id + 1u, CallSort::NotKnown);
  CallSort& known = call_sorts_[id];
  if (known != CallSort::NotKnown) return known;
  known = CallSort::Other;
  const TraceCall* call = reader_.schema().call(id);
  if (call && call->level == "library") known = CallSort::Library;
  if (call && call->name == "cuMemHostGetDevicePointer") known = CallSort::DeviceAddressOfHost;
  if (call && call->name == "cuProfilerStart") known = CallSort::ProfilerStart;
  if (call && call->name == "cuProfilerStop") known = CallSort::ProfilerStop;
  if (call && call->name.rfind("cudaMemset3D", 0) == 0) known = CallSort::Memset3d;
  return known;
}

void ProcessBuilder::on_library_call(const Moment& at, const std::shared_ptr<const void>& chunk) {
  LibraryCalls::Ended call;
  call.thread = at.lane;
  call.call = at.record.call;
  call.name = reader_.schema().call(at.record.call)->name;
  call.result = at.record.result;
  call.begin = at.begin;
  call.end = at.end;
  call.origin = at.thread.stack;
  call.counted = at.counted;
  call.first_of_call = at.first_of_call;
  timeline_.library_ended(call, at.record, chunk);
}

void ProcessBuilder::on_order(const Moment& at) {
  const auto value = decode<StreamOrder>(at.record);
  if (value.what == static_cast<u32>(OrderKind::EventRecord)) loops_.recorded(at.lane, value.object);
  timeline_.ordered(value, stream_of(at, value.stream, value.context, value.flags), at.begin, at.end);
}

}  // namespace gputrace
