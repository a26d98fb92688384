// cuStream*: life, order and attributes of streams.
#include <algorithm>

#include "simgpu/driver/context/context.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/memory/memory.h"
#include "simgpu/driver/observe/observe.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

CUresult make_stream(Call& call, CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  const int kept = std::clamp(priority, kHighestPriority, kLowestPriority);
  Stream* stream = create_stream(*context, Stream::Kind::created, flags, kept);
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(stream);
  if (looked_at(look::resources)) show_stream(ResourceNotice::Act::stream_created, *stream);
  return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle) {
  auto* stream = live<Stream>(handle);
  if (stream == nullptr || stream->kind != Stream::Kind::created) return CUDA_ERROR_INVALID_HANDLE;
  if (looked_at(look::resources)) show_stream(ResourceNotice::Act::stream_destroyed, *stream);
  destroy_stream(*stream);
  return CUDA_SUCCESS;
}

// Where a stream keeps an attribute; null for those that streams do not have.
CUstreamAttrValue* attribute_of(Stream& stream, int attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return &stream.access_policy;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return &stream.sync_policy;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return &stream.mem_sync_domain;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return &stream.mem_sync_domain_map;
    default:
      return nullptr;
  }
}

}  // namespace

SIM_API(cuStreamCreate, "cuStreamCreate", (CUstream * out, unsigned flags), (out, flags)) {
  return make_stream(call, out, flags, 0);
}

SIM_API(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (CUstream * out, unsigned flags, int priority),
        (out, flags, priority)) {
  return make_stream(call, out, flags, priority);
}

SIM_API(cuStreamDestroy_v2, "cuStreamDestroy", (CUstream handle), (handle)) { return destroy(handle); }
SIM_ALIAS(cuStreamDestroy, cuStreamDestroy_v2, "cuStreamDestroy", (CUstream handle), (handle))

SIM_API_PTSZ(cuStreamGetPriority, "cuStreamGetPriority", (CUstream handle, int* priority), (handle, priority)) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetFlags, "cuStreamGetFlags", (CUstream handle, unsigned* flags), (handle, flags)) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetId, "cuStreamGetId", (CUstream handle, unsigned long long* id), (handle, id)) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *id = stream->id;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetDevice, "cuStreamGetDevice", (CUstream handle, CUdevice* dev), (handle, dev)) {
  if (dev == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *dev = stream->context->device->ordinal;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCtx, "cuStreamGetCtx", (CUstream handle, CUcontext* out), (handle, out)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *out = handle_of(stream->context);
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetCtx_v2, "cuStreamGetCtx", (CUstream handle, CUcontext* out, CUgreenCtx* green),
             (handle, out, green)) {
  if (out == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  *out = handle_of(stream->context);
  *green = nullptr;
  return CUDA_SUCCESS;
}

SIM_API(cuStreamGetGreenCtx, "cuStreamGetGreenCtx", (CUstream handle, CUgreenCtx* green), (handle, green)) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.stream(handle) == nullptr) return call.stream_error(handle);
  *green = nullptr;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamQuery, "cuStreamQuery", (CUstream handle), (handle)) {
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (CUresult refused = capture_refuses_sync(call, *stream); refused != CUDA_SUCCESS) return refused;
  return stream_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API_PTSZ(cuStreamSynchronize, "cuStreamSynchronize", (CUstream handle), (handle)) {
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (CUresult refused = capture_refuses_sync(call, *stream); refused != CUDA_SUCCESS) return refused;
  retain(stream);
  stream_wait_host(*stream);
  if (looked_at(look::syncs)) show_sync(call, SyncNotice::Kind::stream, *stream->context, stream, nullptr);
  if (call.stamp()) call.truth(TruthFields("sync").add("what", "stream").add("object", stream->id));
  release(stream);
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream handle, CUevent event_handle, unsigned flags),
             (handle, event_handle, flags)) {
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  auto* event = live<Event>(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (capturing(*stream) || event_in_capture(*event)) return capture_event_wait(call, *stream, *event, flags);
  if (CUresult refused = capture_refuses_legacy(call, *stream); refused != CUDA_SUCCESS) return refused;
  event_wait(call, *stream, *event);
  if (looked_at(look::syncs)) show_sync(call, SyncNotice::Kind::stream_wait_event, *stream->context, stream, event);
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamAttachMemAsync, "cuStreamAttachMemAsync",
             (CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags), (handle, address, bytes, flags)) {
  const bool one_kind = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  if (!one_kind) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  const std::optional<Allocation> allocation = find_allocation(address);
  if (!allocation || allocation->kind != MemoryKind::managed) return CUDA_ERROR_INVALID_VALUE;
  if (bytes != 0 && bytes != allocation->bytes) return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_MEM_ATTACH_SINGLE && stream->kind == Stream::Kind::legacy) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = capture_refuses_sync(call, *stream); refused != CUDA_SUCCESS) return refused;
  update_allocation(address, [flags](Allocation& own) { own.flags = flags; });
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamCopyAttributes, "cuStreamCopyAttributes", (CUstream dst_handle, CUstream src_handle),
             (dst_handle, src_handle)) {
  Stream* dst = call.stream(dst_handle);
  Stream* src = call.stream(src_handle);
  if (dst == nullptr || src == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (int attribute = 0; attribute < 32; ++attribute) {
    CUstreamAttrValue* from = attribute_of(*src, attribute);
    if (from != nullptr) *attribute_of(*dst, attribute) = *from;
  }
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamGetAttribute, "cuStreamGetAttribute",
             (CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value), (handle, attribute, value)) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value->priority = stream->priority;
    return CUDA_SUCCESS;
  }
  const CUstreamAttrValue* known = attribute_of(*stream, attribute);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = *known;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuStreamSetAttribute, "cuStreamSetAttribute",
             (CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value), (handle, attribute, value)) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = call.stream(handle);
  if (stream == nullptr) return call.stream_error(handle);
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    stream->priority = std::clamp(value->priority, kHighestPriority, kLowestPriority);
    return CUDA_SUCCESS;
  }
  CUstreamAttrValue* known = attribute_of(*stream, attribute);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *known = *value;
  return CUDA_SUCCESS;
}
