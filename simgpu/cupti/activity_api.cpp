// The activity API.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "simgpu/cupti/activity.h"
#include "simgpu/cupti/callback.h"
#include "simgpu/cupti/collector.h"
#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/entry.h"
#include "simgpu/cupti/knobs.h"
#include "simgpu/cupti/layout.h"
#include "simgpu/cupti/records.h"

using namespace simgpu::cupti;

namespace {

// The slot belongs to somebody whose CUPTI we are not: what they have, we cannot get.
bool taken() { return knobs().busy; }

CUptiResult switch_kind(CUpti_ActivityKind kind, CUcontext context, bool all, bool on) {
  if (taken() && on) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  uint32_t id = 0;
  if (!all && (context == nullptr || driver()->context_id(context, &id) != CUDA_SUCCESS))
    return CUPTI_ERROR_INVALID_CONTEXT;
  const CUptiResult result = enable_kind(kind, id, on);
  if (result != CUPTI_SUCCESS || !on) return result;
  want_buffer();
  return result;
}

void dump_devices() {
  for (uint32_t i = 0; i < driver()->devices(); ++i) {
    simgpu::DeviceFacts facts{};
    if (driver()->device_facts(i, &facts)) record_device(i, facts);
  }
}

CUptiResult switch_call(bool runtime, CUpti_CallbackId call, bool on) {
  if (!has_per_call_switches()) return CUPTI_ERROR_NOT_SUPPORTED;
  if (taken() && on) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (call == 0 || call >= (runtime ? uint32_t{CUPTI_RUNTIME_TRACE_CBID_SIZE} : uint32_t{CUPTI_DRIVER_TRACE_CBID_SIZE}))
    return CUPTI_ERROR_INVALID_PARAMETER;
  enable_call(runtime, call, on);
  return CUPTI_SUCCESS;
}

// Attributes by number: how long their value is, and what it is now. Only the size of the device's buffers and whose buffers records go into
// have a meaning here; the others are kept.
struct Attribute {
  size_t bytes;
  uint64_t value;
};
Attribute* attribute_of(CUpti_ActivityAttribute number) {
  static Attribute kept[] = {{sizeof(size_t), 0},      {sizeof(size_t), 8 << 20}, {sizeof(size_t), 250},
                             {sizeof(size_t), 25'000}, {sizeof(size_t), 250},     {sizeof(uint8_t), 0},
                             {sizeof(size_t), 3},      {sizeof(size_t), 3},       {sizeof(uint8_t), 0},
                             {sizeof(uint8_t), 1},     {sizeof(size_t), 1 << 20}};
  if (number == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER && !has_thread_buffers()) return nullptr;
  const auto index = static_cast<size_t>(number);
  return index < std::size(kept) ? &kept[index] : nullptr;
}

size_t size_of(const CUpti_Activity& record) {
  const Layout& l = layout();
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return l.kernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return l.copy;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return l.peer_copy;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return l.memset;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return l.graph;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return l.sync;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return l.overhead;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return l.memory;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return l.pool;
    case CUPTI_ACTIVITY_KIND_JIT:
      return l.jit;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return l.device;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return l.context;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
      return sizeof(CUpti_ActivityEnvironment);
    default:
      return 0;
  }
}

}  // namespace

CUPTI_SIM(cuptiActivityRegisterCallbacks, driver,
          (CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete), (request, complete)) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (taken()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  set_buffer_callbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityRegisterTimestampCallback, driver, (CUpti_TimestampCallbackFunc function), (function)) {
  if (function == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (taken()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  set_client_clock(function);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityEnable, driver, (CUpti_ActivityKind kind), (kind)) {
  const CUptiResult result = switch_kind(kind, nullptr, true, true);
  if (result != CUPTI_SUCCESS) return result;
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) dump_devices();
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) {
    sample_environment(true);
  }
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityEnableAndDump, driver, (CUpti_ActivityKind kind), (kind)) {
  const CUptiResult result = switch_kind(kind, nullptr, true, true);
  if (result == CUPTI_SUCCESS && kind == CUPTI_ACTIVITY_KIND_DEVICE) dump_devices();
  return result;
}

CUPTI_SIM(cuptiActivityDisable, driver, (CUpti_ActivityKind kind), (kind)) {
  return switch_kind(kind, nullptr, true, false);
}

CUPTI_SIM(cuptiActivityEnableContext, driver, (CUcontext context, CUpti_ActivityKind kind), (context, kind)) {
  return switch_kind(kind, context, false, true);
}

CUPTI_SIM(cuptiActivityDisableContext, driver, (CUcontext context, CUpti_ActivityKind kind), (context, kind)) {
  return switch_kind(kind, context, false, false);
}

CUPTI_SIM(cuptiActivityEnableDriverApi, driver, (CUpti_CallbackId call, uint8_t enable), (call, enable)) {
  return switch_call(false, call, enable != 0);
}

CUPTI_SIM(cuptiActivityEnableRuntimeApi, driver, (CUpti_CallbackId call, uint8_t enable), (call, enable)) {
  return switch_call(true, call, enable != 0);
}

#if CUPTI_API_VERSION >= 130300
// The same for a subscriber, of which there is one. Records chosen field by field are not modelled.
CUPTI_SIM(cuptiActivityEnable_v2, driver,
          (CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, CUpti_ActivityConfig* configuration),
          (subscriber, kind, configuration)) {
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (configuration != nullptr) return CUPTI_ERROR_NOT_SUPPORTED;
  return switch_kind(kind, nullptr, true, true);
}

CUPTI_SIM(cuptiActivityDisable_v2, driver,
          (CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, CUpti_ActivityConfig* configuration),
          (subscriber, kind, configuration)) {
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (configuration != nullptr) return CUPTI_ERROR_NOT_SUPPORTED;
  return switch_kind(kind, nullptr, true, false);
}

CUPTI_SIM(cuptiActivityRegisterCallbacks_v2, driver,
          (CUpti_SubscriberHandle subscriber, CUpti_BuffersCallbackRequestFunc_v2 request,
           CUpti_BuffersCallbackCompleteFunc_v2 complete),
          (subscriber, request, complete)) {
  if (!is_subscriber(subscriber) || request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  static std::atomic<CUpti_BuffersCallbackRequestFunc_v2> requested;
  static std::atomic<CUpti_BuffersCallbackCompleteFunc_v2> completed;
  requested = request;
  completed = complete;
  set_buffer_callbacks(
      [](uint8_t** buffer, size_t* bytes, size_t* records) {
        CUpti_BufferCallbackRequestInfo info{};
        info.structSize = sizeof info;
        requested.load()(buffer, bytes, records, &info);
      },
      [](CUcontext, uint32_t, uint8_t* buffer, size_t bytes, size_t valid) {
        CUpti_BufferCallbackCompleteInfo info{};
        info.structSize = sizeof info;
        completed.load()(buffer, bytes, valid, &info);
      });
  return CUPTI_SUCCESS;
}
#endif

// Only before the first context: the headers' "before CUDA initialization".
CUPTI_SIM(cuptiActivityEnableLatencyTimestamps, driver, (uint8_t enable), (enable)) {
  if (taken()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (enable != 0 && driver()->contexts_made() != 0) return CUPTI_ERROR_INVALID_OPERATION;
  set_latency_stamps(enable != 0);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityFlushAll, driver, (uint32_t flag), (flag)) {
  if (!has_buffer_callbacks()) return CUPTI_ERROR_INVALID_OPERATION;
  return flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

CUPTI_SIM(cuptiActivityFlush, driver,
          ([[maybe_unused]] CUcontext context, [[maybe_unused]] uint32_t stream, uint32_t flag),
          (context, stream, flag)) {
  if (!has_buffer_callbacks()) return CUPTI_ERROR_INVALID_OPERATION;
  return flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

CUPTI_SIM(cuptiActivityFlushPeriod, driver, (uint32_t milliseconds), (milliseconds)) {
  set_flush_period(simgpu::Nanos{milliseconds} * 1'000'000);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityGetNextRecord, nothing, (uint8_t * buffer, size_t bytes, CUpti_Activity** record),
          (buffer, bytes, record)) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  auto* next = reinterpret_cast<uint8_t*>(*record);
  if (next == nullptr) {
    next = buffer;
  } else {
    const size_t size = size_of(**record);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    next += (size + 7) / 8 * 8;
  }
  if (next >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return size_of(**record) != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

// One queue for all contexts and streams.
CUPTI_SIM(cuptiActivityGetNumDroppedRecords, driver,
          ([[maybe_unused]] CUcontext context, [[maybe_unused]] uint32_t stream, size_t* dropped),
          (context, stream, dropped)) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = take_dropped();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivitySetAttribute, driver, (CUpti_ActivityAttribute number, size_t* bytes, void* value),
          (number, bytes, value)) {
  Attribute* attribute = attribute_of(number);
  if (attribute == nullptr || bytes == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  uint64_t given = 0;
  std::memcpy(&given, value, attribute->bytes);
  if (number == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE) {
    if (given == 0) return CUPTI_ERROR_INVALID_PARAMETER;
    set_device_buffer(given);
  }
  if (number == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) set_per_thread(given != 0);
  attribute->value = given;
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityGetAttribute, driver, (CUpti_ActivityAttribute number, size_t* bytes, void* value),
          (number, bytes, value)) {
  const Attribute* attribute = attribute_of(number);
  if (attribute == nullptr || bytes == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  const uint64_t now = number == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE ? device_buffer() : attribute->value;
  std::memcpy(value, &now, attribute->bytes);
  *bytes = attribute->bytes;
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiSetThreadIdType, driver, (CUpti_ActivityThreadIdType type), (type)) {
  if (type < CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT || type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  set_thread_ids(type);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetThreadIdType, driver, (CUpti_ActivityThreadIdType * type), (type)) {
  if (type == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *type = thread_ids();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityPushExternalCorrelationId, driver, (CUpti_ExternalCorrelationKind kind, uint64_t id),
          (kind, id)) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  push_external(kind, id);
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiActivityPopExternalCorrelationId, driver, (CUpti_ExternalCorrelationKind kind, uint64_t* last),
          (kind, last)) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  return pop_external(kind, last) ? CUPTI_SUCCESS : CUPTI_ERROR_QUEUE_EMPTY;
}

// Everything off and forgotten; buffers that the client has not got back are its own again, and what records point to is gone.
CUPTI_SIM(cuptiFinalize, driver, (), ()) {
  forget_subscriber();
  forget_kinds();
  reset_collector();
  forget_names();
  return CUPTI_SUCCESS;
}
