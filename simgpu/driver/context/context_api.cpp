// cuCtx* and cuDevicePrimaryCtx*.
#include <algorithm>

#include "simgpu/driver/context/context.h"
#include "simgpu/driver/context/device.h"
#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/observe/observe.h"
#include "simgpu/driver/time/timeline.h"

using namespace simgpu;

namespace {

bool valid_flags(unsigned flags) {
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return false;
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  return scheduling == 0 || (scheduling & (scheduling - 1)) == 0;
}

CUresult create_context(CUcontext* out, unsigned flags, CUdevice dev, unsigned api_version) {
  if (out == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = make_context(*device, false);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->api_version = api_version;
  activate_context(*context, flags);
  if (!push_context(context)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(context);
  return CUDA_SUCCESS;
}

// The context a handle names, destroyed ones too (their objects stay).
Context* known_context(CUcontext handle) { return live<Context>(handle); }

CUresult destroy_context(CUcontext handle) {
  Context* context = known_context(handle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  deactivate_context(*context);
  if (thread_state.current == context) pop_context();
  return CUDA_SUCCESS;
}

CUresult pop_current(CUcontext* out) {
  Context* context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  pop_context();
  if (out != nullptr) *out = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult push_current(CUcontext handle) {
  Context* context = known_context(handle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return push_context(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

SIM_API(cuCtxCreate_v2, "cuCtxCreate", (CUcontext * context, unsigned flags, CUdevice dev), (context, flags, dev)) {
  return create_context(context, flags, dev, 3020);
}
SIM_ALIAS(cuCtxCreate, cuCtxCreate_v2, "cuCtxCreate", (CUcontext * context, unsigned flags, CUdevice dev),
          (context, flags, dev))

SIM_API(cuCtxCreate_v3, "cuCtxCreate",
        (CUcontext * context, CUexecAffinityParam* affinity, int count, unsigned flags, CUdevice dev),
        (context, affinity, count, flags, dev)) {
  if (count != 0 || affinity != nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create_context(context, flags, dev, 3021);
}

SIM_API(cuCtxCreate_v4, "cuCtxCreate", (CUcontext * context, CUctxCreateParams* params, unsigned flags, CUdevice dev),
        (context, params, flags, dev)) {
  if (params != nullptr && params->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params != nullptr && params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create_context(context, flags, dev, 3021);
}

SIM_API(cuCtxDestroy_v2, "cuCtxDestroy", (CUcontext handle), (handle)) { return destroy_context(handle); }
SIM_ALIAS(cuCtxDestroy, cuCtxDestroy_v2, "cuCtxDestroy", (CUcontext handle), (handle))

SIM_API(cuCtxAttach, "cuCtxAttach", (CUcontext * out, unsigned flags), (out, flags)) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *out = handle_of(context);
  return CUDA_SUCCESS;
}

SIM_API(cuCtxDetach, "cuCtxDetach", (CUcontext handle), (handle)) {
  return known_context(handle) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : destroy_context(handle);
}

SIM_API(cuCtxPushCurrent_v2, "cuCtxPushCurrent", (CUcontext handle), (handle)) { return push_current(handle); }
SIM_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2, "cuCtxPushCurrent", (CUcontext handle), (handle))

SIM_API(cuCtxPopCurrent_v2, "cuCtxPopCurrent", (CUcontext * out), (out)) { return pop_current(out); }
SIM_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2, "cuCtxPopCurrent", (CUcontext * out), (out))

SIM_API(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext handle), (handle)) {
  if (handle == nullptr) {
    if (current_context() != nullptr) pop_context();
    return CUDA_SUCCESS;
  }
  Context* context = known_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  set_current_context(context);
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext * out), (out)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = current_context();
  *out = context != nullptr ? handle_of(context) : nullptr;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice * dev), (dev)) {
  if (dev == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *dev = context->device->ordinal;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevice_v2, "cuCtxGetDevice", (CUdevice * dev, CUcontext handle), (dev, handle)) {
  if (dev == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = handle == nullptr ? call.context() : known_context(handle);
  if (context == nullptr) return handle == nullptr ? call.context_error() : CUDA_ERROR_INVALID_CONTEXT;
  *dev = context->device->ordinal;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetId, "cuCtxGetId", (CUcontext handle, unsigned long long* id), (handle, id)) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = handle == nullptr ? call.context() : known_context(handle);
  if (context == nullptr) return handle == nullptr ? call.context_error() : CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion, "cuCtxGetApiVersion", (CUcontext handle, unsigned* version), (handle, version)) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = handle == nullptr ? call.context() : known_context(handle);
  if (context == nullptr) return handle == nullptr ? call.context_error() : CUDA_ERROR_INVALID_CONTEXT;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetFlags, "cuCtxGetFlags", (unsigned* flags), (flags)) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *flags = context->flags;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSetFlags, "cuCtxSetFlags", (unsigned flags), (flags)) {
  if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  context->flags = flags;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSynchronize, "cuCtxSynchronize", (), ()) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  context_wait_host(*context);
  if (looked_at(look::syncs)) show_sync(call, SyncNotice::Kind::context, *context, nullptr, nullptr);
  call.truth(TruthFields("sync").add("what", "context").add("object", context->id));
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSynchronize_v2, "cuCtxSynchronize", (CUcontext handle), (handle)) {
  Context* context = handle == nullptr ? call.context() : known_context(handle);
  if (context == nullptr) return handle == nullptr ? call.context_error() : CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (CUresult refused = capture_refuses_unsafe(call); refused != CUDA_SUCCESS) return refused;
  context_wait_host(*context);
  if (looked_at(look::syncs)) show_sync(call, SyncNotice::Kind::context, *context, nullptr, nullptr);
  call.truth(TruthFields("sync").add("what", "context").add("object", context->id));
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit, "cuCtxGetLimit", (size_t * value, CUlimit limit), (value, limit)) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (static_cast<unsigned>(limit) >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSetLimit, "cuCtxSetLimit", (CUlimit limit, size_t value), (limit, value)) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      context->limits[limit] = std::min<size_t>((value + 15) / 16 * 16, 512 * 1024);
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      context->limits[limit] = value <= 32 ? 32 : value <= 64 ? 64 : 128;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      context->limits[limit] = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

SIM_API(cuCtxGetCacheConfig, "cuCtxGetCacheConfig", (CUfunc_cache * config), (config)) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *config = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig, "cuCtxSetCacheConfig", (CUfunc_cache config), (config)) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  context->cache_config = config;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetSharedMemConfig, "cuCtxGetSharedMemConfig", (CUsharedconfig * config), (config)) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxSetSharedMemConfig, "cuCtxSetSharedMemConfig", (CUsharedconfig config), (config)) {
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) return CUDA_ERROR_INVALID_VALUE;
  context->shared_config = config;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int* least, int* greatest), (least, greatest)) {
  if (call.context() == nullptr) return call.context_error();
  if (least != nullptr) *least = kLowestPriority;
  if (greatest != nullptr) *greatest = kHighestPriority;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache", (), ()) {
  return call.context() == nullptr ? call.context_error() : CUDA_SUCCESS;
}

SIM_API(cuCtxGetExecAffinity, "cuCtxGetExecAffinity", (CUexecAffinityParam * affinity, CUexecAffinityType type),
        (affinity, type)) {
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  affinity->type = type;
  affinity->param.smCount.val = static_cast<unsigned>(knobs().sms);
  return CUDA_SUCCESS;
}

SIM_API(cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites",
        (CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope), (target, scope)) {
  static_cast<void>(target);
  static_cast<void>(scope);
  return call.context() == nullptr ? call.context_error() : CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * out, CUdevice dev), (out, dev)) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(device->mutex);
  if (device->primary_references++ == 0) activate_context(*device->primary, device->primary_flags);
  *out = handle_of(device->primary);
  return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", (CUdevice dev), (dev)) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(device->mutex);
  if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_references == 0) deactivate_context(*device->primary);
  return CUDA_SUCCESS;
}
SIM_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", (CUdevice dev), (dev))

// All that the context held is gone, and with it every reference: who wants it again retains it again.
SIM_API(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", (CUdevice dev), (dev)) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(device->mutex);
  if (!device->primary->active.load()) return CUDA_SUCCESS;
  deactivate_context(*device->primary);
  device->primary_references = 0;
  return CUDA_SUCCESS;
}
SIM_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", (CUdevice dev), (dev))

SIM_API(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags", (CUdevice dev, unsigned flags), (dev, flags)) {
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  device->primary_flags = flags;
  if (device->primary_references > 0) device->primary->flags = flags;
  return CUDA_SUCCESS;
}
SIM_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags",
          (CUdevice dev, unsigned flags), (dev, flags))

SIM_API(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", (CUdevice dev, unsigned* flags, int* active),
        (dev, flags, active)) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(device->mutex);
  *active = device->primary_references > 0 ? 1 : 0;
  *flags = device->primary_references > 0 ? device->primary->flags : device->primary_flags;
  return CUDA_SUCCESS;
}

SIM_API(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext handle, unsigned flags), (handle, flags)) {
  Context* peer = known_context(handle);
  Context* context = call.context();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return call.context_error();
  if (peer == nullptr || !peer->active.load() || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  std::lock_guard lock(context->mutex);
  auto& peers = context->peers;
  if (std::find(peers.begin(), peers.end(), peer) != peers.end()) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  peers.push_back(peer);
  return CUDA_SUCCESS;
}

SIM_API(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", (CUcontext handle), (handle)) {
  Context* peer = known_context(handle);
  Context* context = call.context();
  if (context == nullptr) return call.context_error();
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(context->mutex);
  auto& peers = context->peers;
  const auto found = std::find(peers.begin(), peers.end(), peer);
  if (found == peers.end()) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  peers.erase(found);
  return CUDA_SUCCESS;
}
