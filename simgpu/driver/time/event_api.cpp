// cuEvent*: points in the streams' time.
#include <cstring>

#include "simgpu/driver/context/context.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/observe/observe.h"
#include "simgpu/driver/time/event_share.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

CUresult record(Call& call, CUevent event_handle, CUstream stream_handle, unsigned flags) {
  auto* event = live<Event>(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(stream_handle);
  if (stream == nullptr) return call.stream_error(stream_handle);
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (capturing(*stream)) return capture_event_record(call, *stream, *event, flags);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  event_record(call, *stream, *event);
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent handle) {
  auto* event = live<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return retire(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The event's time; CUDA_ERROR_INVALID_HANDLE if it can have none.
CUresult time_of(Event& event, Nanos* at) {
  if ((event.flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult result = event_query(event); result != CUDA_SUCCESS) return result;
  std::lock_guard lock(event.mutex);
  if (!event.recorded) return CUDA_ERROR_INVALID_HANDLE;
  *at = event.at;
  return CUDA_SUCCESS;
}

CUresult elapsed(Call& call, float* milliseconds, CUevent begin_handle, CUevent end_handle) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* begin = live<Event>(begin_handle);
  auto* end = live<Event>(end_handle);
  if (begin == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Event* event : {begin, end}) {
    if (CUresult refused = capture_refuses_event(call, *event); refused != CUDA_SUCCESS) return refused;
  }
  Nanos from = 0;
  Nanos to = 0;
  if (CUresult result = time_of(*begin, &from); result != CUDA_SUCCESS) return result;
  if (CUresult result = time_of(*end, &to); result != CUDA_SUCCESS) return result;
  *milliseconds = static_cast<float>(static_cast<double>(static_cast<int64_t>(to - from)) / 1e6);
  return CUDA_SUCCESS;
}

}  // namespace

SIM_API(cuEventCreate, "cuEventCreate", (CUevent * out, unsigned flags), (out, flags)) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  auto* event = create<Event>();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->context = context;
  event->flags = flags;
  *out = handle_of(event);
  return CUDA_SUCCESS;
}

SIM_API(cuEventDestroy_v2, "cuEventDestroy", (CUevent event), (event)) { return destroy(event); }
SIM_ALIAS(cuEventDestroy, cuEventDestroy_v2, "cuEventDestroy", (CUevent event), (event))

SIM_API_PTSZ(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream), (event, stream)) {
  return record(call, event, stream, 0);
}

SIM_API_PTSZ(cuEventRecordWithFlags, "cuEventRecordWithFlags", (CUevent event, CUstream stream, unsigned flags),
             (event, stream, flags)) {
  return record(call, event, stream, flags);
}

SIM_API(cuEventQuery, "cuEventQuery", (CUevent handle), (handle)) {
  auto* event = live<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult refused = capture_refuses_event(call, *event); refused != CUDA_SUCCESS) return refused;
  return event_query(*event);
}

SIM_API(cuEventSynchronize, "cuEventSynchronize", (CUevent handle), (handle)) {
  auto* event = live<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult refused = capture_refuses_event(call, *event); refused != CUDA_SUCCESS) return refused;
  retain(event);
  event_wait_host(*event);
  if (looked_at(look::syncs)) show_sync(call, SyncNotice::Kind::event, *event->context, nullptr, event);
  release(event);
  if (call.stamp())
    call.truth(TruthFields("sync").add("what", "event").add("object", static_cast<const void*>(handle)));
  return CUDA_SUCCESS;
}

SIM_API(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent begin, CUevent end),
        (milliseconds, begin, end)) {
  return elapsed(call, milliseconds, begin, end);
}

SIM_API(cuEventElapsedTime_v2, "cuEventElapsedTime", (float* milliseconds, CUevent begin, CUevent end),
        (milliseconds, begin, end)) {
  return elapsed(call, milliseconds, begin, end);
}

SIM_API(cuIpcGetEventHandle, "cuIpcGetEventHandle", (CUipcEventHandle * out, CUevent handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* event = live<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SharedPlace place{};
  if (CUresult result = export_event(*event, &place); result != CUDA_SUCCESS) return result;
  static_assert(sizeof place <= sizeof *out);
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &place, sizeof place);
  return CUDA_SUCCESS;
}

SIM_API(cuIpcOpenEventHandle, "cuIpcOpenEventHandle", (CUevent * out, CUipcEventHandle handle), (out, handle)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  SharedPlace place{};
  std::memcpy(&place, &handle, sizeof place);
  auto* event = create<Event>();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->context = context;
  event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  if (CUresult result = import_event(place, *event); result != CUDA_SUCCESS) {
    retire(event);
    return result;
  }
  *out = handle_of(event);
  return CUDA_SUCCESS;
}

// Everything in the context before the event; and all its streams after one.
SIM_API(cuCtxRecordEvent, "cuCtxRecordEvent", (CUcontext context_handle, CUevent event_handle),
        (context_handle, event_handle)) {
  auto* context = live<Context>(context_handle);
  auto* event = live<Event>(event_handle);
  if (context == nullptr || !context->active.load()) return CUDA_ERROR_INVALID_CONTEXT;
  if (event == nullptr || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  event_record_context(call, *context, *event);
  return CUDA_SUCCESS;
}

SIM_API(cuCtxWaitEvent, "cuCtxWaitEvent", (CUcontext context_handle, CUevent event_handle),
        (context_handle, event_handle)) {
  auto* context = live<Context>(context_handle);
  auto* event = live<Event>(event_handle);
  if (context == nullptr || !context->active.load()) return CUDA_ERROR_INVALID_CONTEXT;
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(context->mutex);
    streams = context->streams;
    for (Stream* stream : streams) retain(stream);
  }
  for (Stream* stream : streams) {
    event_wait(call, *stream, *event);
    release(stream);
  }
  return CUDA_SUCCESS;
}
