#include "simgpu/driver/observe/observer.h"

#include <cstdio>

#include "simgpu/driver/context/context.h"
#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/observe/observe.h"

namespace simgpu {

constinit std::atomic<uint32_t> looks{0};
constinit std::atomic<bool> separate_runtime_ids{false};

namespace {

constinit std::atomic<const Observer*> attached{nullptr};
constinit std::atomic<uint32_t> next_correlation{1};

void set_looks(uint32_t wanted, bool separate_ids) {
  separate_runtime_ids.store(separate_ids);
  looks.store(wanted);
  process_mode_changed();
}

Context* context_from(CUcontext handle) {
  Context* context = handle == nullptr ? current_context() : live<Context>(handle);
  return context != nullptr && context->active.load() ? context : nullptr;
}

CUresult context_id(CUcontext handle, uint32_t* id) {
  const Context* context = context_from(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = static_cast<uint32_t>(context->id);
  return CUDA_SUCCESS;
}

CUresult device_id(CUcontext handle, uint32_t* id) {
  const Context* context = context_from(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = static_cast<uint32_t>(context->device->ordinal);
  return CUDA_SUCCESS;
}

CUresult stream_id(CUcontext context_handle, CUstream handle, bool per_thread, uint32_t* id) {
  if (handle == nullptr) handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  const Stream* stream = nullptr;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* context = context_from(context_handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    stream = handle == CU_STREAM_LEGACY ? legacy_stream(*context) : per_thread_stream(*context);
  } else {
    stream = live<Stream>(handle);
  }
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *id = static_cast<uint32_t>(stream->id);
  return CUDA_SUCCESS;
}

// Of a graph, an executable graph or a node.
template <typename Object, typename Handle, typename Id>
CUresult id_of(Handle handle, Id* id) {
  const Object* object = live<Object>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *id = object->id;
  return CUDA_SUCCESS;
}

uint32_t device_count() { return process_initialized() ? static_cast<uint32_t>(devices().size()) : 0; }

bool device_facts(uint32_t ordinal, DeviceFacts* facts) {
  if (ordinal >= device_count()) return false;
  const Device& device = *devices()[ordinal];
  std::snprintf(facts->name, sizeof facts->name, "%s", device.name.c_str());
  facts->uuid = device.uuid;
  facts->memory_bytes = knobs().memory;
  facts->sms = knobs().sms;
  facts->cc_major = knobs().cc_major;
  facts->cc_minor = knobs().cc_minor;
  facts->copy_bandwidth = knobs().copy_bandwidth;
  return true;
}

constexpr DriverSide kDriverSide = {set_looks,
                                    process_initialized,
                                    contexts_activated,
                                    context_id,
                                    device_id,
                                    stream_id,
                                    id_of<Graph, CUgraph, uint32_t>,
                                    id_of<GraphExec, CUgraphExec, uint32_t>,
                                    id_of<GraphNode, CUgraphNode, uint64_t>,
                                    device_count,
                                    device_facts};

SeenMemory seen(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::pageable:
      return SeenMemory::pageable;
    case MemoryKind::pinned:
      return SeenMemory::pinned;
    case MemoryKind::managed:
      return SeenMemory::managed;
    case MemoryKind::array:
      return SeenMemory::array;
    case MemoryKind::device:
    case MemoryKind::pool:
    case MemoryKind::vmm:
      break;
  }
  return SeenMemory::device;
}

// False: nobody numbered the call, so nobody could tell whose the operation is.
bool fill(OperationNotice& notice, const Origin& origin, const Span& span, const Device* device) {
  if (origin.correlation == 0) return false;
  const Context& context = *origin.stream->context;
  notice.correlation = origin.correlation;
  notice.device = static_cast<uint32_t>(device != nullptr ? device->ordinal : context.device->ordinal);
  notice.context = static_cast<uint32_t>(context.id);
  notice.stream = static_cast<uint32_t>(origin.stream->id);
  notice.called = origin.called;
  notice.start = span.start;
  notice.end = span.end;
  notice.graph = origin.in_graph ? origin.graph.exec_id : 0;
  notice.graph_node = origin.in_graph ? origin.graph.node_id : 0;
  return true;
}

void put(uint32_t (&out)[3], const Dim3& dim) {
  out[0] = dim.x;
  out[1] = dim.y;
  out[2] = dim.z;
}

}  // namespace

const Observer& observer() { return *attached.load(std::memory_order_acquire); }
uint32_t draw_correlation() { return next_correlation.fetch_add(1, std::memory_order_relaxed); }

void show(const KernelLaunch& launch, const Origin& origin, const Span& span) {
  KernelNotice notice{};
  const Function& function = *launch.function;
  const auto attribute = [&](int which) {
    return static_cast<uint32_t>(function.attributes[static_cast<size_t>(which)].load());
  };
  if (!fill(notice, origin, span, function.context->device)) return;
  notice.symbol = function.code->symbol.c_str();
  put(notice.grid, launch.grid);
  put(notice.block, launch.block);
  put(notice.cluster, launch.cluster);
  notice.registers = function.code->registers ? attribute(CU_FUNC_ATTRIBUTE_NUM_REGS) : 0;
  notice.local_bytes = function.code->registers ? attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) : 0;
  notice.static_shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  notice.dynamic_shared = launch.dynamic_shared;
  notice.cooperative = launch.cooperative;
  observer().kernel(notice);
}

void show(const Copy& copy, const Origin& origin, const Span& span) {
  CopyNotice notice{};
  if (!fill(notice, origin, span, copy.device)) return;
  const auto ordinal = [&](const CopySide& side) {
    return side.device != nullptr ? static_cast<uint32_t>(side.device->ordinal) : notice.device;
  };
  notice.bytes = copy.bytes();
  notice.source = seen(copy.src.memory);
  notice.destination = seen(copy.dst.memory);
  notice.async = copy.async;
  notice.peer = copy.kind == CopyKind::PtoP;
  notice.source_device = ordinal(copy.src);
  notice.destination_device = ordinal(copy.dst);
  const auto context = [&](const CopySide& side) {
    return side.device != nullptr ? static_cast<uint32_t>(side.device->primary->id) : notice.context;
  };
  notice.source_context = context(copy.src);
  notice.destination_context = context(copy.dst);
  observer().copy(notice);
}

void show(const Memset& memset, const Origin& origin, const Span& span) {
  MemsetNotice notice{};
  if (!fill(notice, origin, span, memset.device)) return;
  notice.bytes = memset.bytes();
  notice.value = memset.value;
  notice.memory = seen(memset.memory);
  notice.async = origin.async;
  observer().memset(notice);
}

void show_graph(const Origin& origin, const Span& span, uint64_t nodes) {
  GraphNotice notice{};
  if (!fill(notice, origin, span, nullptr)) return;
  notice.graph_node = 0;
  notice.nodes = nodes;
  observer().graph(notice);
}

void show_sync(Call& call, SyncNotice::Kind kind, const Context& context, const Stream* stream, const Event* event) {
  if (call.correlation() == 0) return;
  SyncNotice notice{};
  notice.kind = kind;
  notice.correlation = call.own_correlation();
  notice.context = static_cast<uint32_t>(context.id);
  notice.stream = stream != nullptr ? static_cast<uint32_t>(stream->id) : ~0u;
  notice.event = event != nullptr ? static_cast<uint32_t>(reinterpret_cast<uint64_t>(event) >> 4) : ~0u;
  notice.context_handle = handle_of(&context);
  notice.stream_handle = stream != nullptr ? public_handle(stream) : nullptr;
  notice.begin = call.begin();
  notice.end = now_ns();
  observer().sync(notice);
}

void show_memory(Call& call, bool allocation, const Allocation& what, const Stream* stream) {
  if (call.correlation() == 0) return;
  MemoryNotice notice{};
  notice.allocation = allocation;
  notice.memory = seen(what.kind);
  notice.correlation = call.own_correlation();
  notice.device = what.device != nullptr ? static_cast<uint32_t>(what.device->ordinal) : 0;
  notice.context = what.context != nullptr ? static_cast<uint32_t>(what.context->id) : 0;
  notice.stream = stream != nullptr ? static_cast<uint32_t>(stream->id) : ~0u;
  notice.async = stream != nullptr;
  if (what.kind == MemoryKind::pool) notice.pool = reinterpret_cast<uint64_t>(what.owner);
  notice.address = what.address;
  notice.bytes = what.bytes;
  notice.at = call.begin();
  observer().memory(notice);
}

bool shows_call(const char* variant, bool runtime) {
  return looked_at(runtime ? look::runtime_calls : look::driver_calls) && may_be_shown() &&
         observer().wants(variant, runtime);
}

void show_call(Call& call, bool entering, int result) {
  CallNotice notice{};
  const Context* context = current_context();
  notice.name = call.name();
  notice.variant = call.variant();
  notice.inside_runtime = thread_state.runtime_correlation != 0;
  notice.correlation = call.own_correlation();
  notice.context = context != nullptr ? static_cast<uint32_t>(context->id) : 0;
  notice.context_handle = context != nullptr ? handle_of(context) : nullptr;
  notice.begin = call.begin();
  notice.client = call.client();
  if (entering) {
    observer().enter(notice);
    return;
  }
  notice.end = now_ns();
  notice.result = result;
  observer().leave(notice);
}

namespace {

void show_runtime(RuntimeCall& call, bool entering, int result) {
  CallNotice notice{};
  const Context* context = current_context();
  notice.name = notice.variant = call.name;
  notice.runtime = true;
  notice.correlation = call.correlation;
  notice.context = context != nullptr ? static_cast<uint32_t>(context->id) : 0;
  notice.context_handle = context != nullptr ? handle_of(context) : nullptr;
  notice.begin = call.begin;
  notice.client = &call.client;
  if (entering) {
    observer().enter(notice);
    return;
  }
  notice.end = now_ns();
  notice.result = result;
  observer().leave(notice);
}

void enter_runtime(RuntimeCall* call) {
  call->correlation = 0;
  call->shown = false;
  if (thread_state.runtime_correlation != 0) return;
  call->shown = shows_call(call->name, true);
  thread_state.runtime_correlation = call->correlation = call->shown ? draw_correlation() : kNotDrawn;
  if (!call->shown) return;
  call->begin = now_ns();
  call->client = 0;
  show_runtime(*call, true, 0);
}

void leave_runtime(RuntimeCall* call, int result) {
  if (call->correlation == 0) return;
  thread_state.runtime_correlation = 0;
  if (call->shown && may_be_shown()) show_runtime(*call, false, result);
}

constexpr RuntimeDoor kRuntimeDoor = {&looks, enter_runtime, leave_runtime};

}  // namespace

}  // namespace simgpu

extern "C" const simgpu::RuntimeDoor* simgpu_runtime_door() { return &simgpu::kRuntimeDoor; }

extern "C" const simgpu::DriverSide* simgpu_cupti_attach(const simgpu::Observer* observer) {
  simgpu::attached.store(observer, std::memory_order_release);
  return &simgpu::kDriverSide;
}
