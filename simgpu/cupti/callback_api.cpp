// The callback API: one subscriber, which hears of calls, resources and synchronizations.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "simgpu/cupti/activity.h"
#include "simgpu/cupti/callback.h"
#include "simgpu/cupti/calls.h"
#include "simgpu/cupti/entry.h"
#include "simgpu/cupti/knobs.h"

using namespace simgpu;
using namespace simgpu::cupti;

namespace {

constexpr char kStranger[] = "simgpu: SIMGPU_CUPTI=busy";

constexpr size_t kNameBytes = 64;  // CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN, which the headers of CUDA 12 do not have

// Enabled callbacks by domain and number.
using Enabled = std::array<std::array<std::atomic<bool>, kMostCalls>, CUPTI_CB_DOMAIN_SIZE>;

struct Subscriber {
  std::mutex mutex;  // of what follows it, but for `enabled`
  bool taken = false;
  char name[kNameBytes] = "";
  std::atomic<CUpti_CallbackFunc> callback{nullptr};
  std::atomic<void*> data{nullptr};
  Enabled enabled{};
};

Subscriber& the() {
  static auto* const kSubscriber = new Subscriber;
  return *kSubscriber;
}

bool is_the_one(CUpti_SubscriberHandle handle) {
  return the().taken && handle == reinterpret_cast<CUpti_SubscriberHandle>(&the());
}

bool enabled(CUpti_CallbackDomain domain, uint32_t number) {
  return number < kMostCalls && the().enabled[domain][number].load(std::memory_order_relaxed);
}

void call_back(CUpti_CallbackDomain domain, uint32_t number, const void* data) {
  const CUpti_CallbackFunc callback = the().callback.load(std::memory_order_acquire);
  if (callback != nullptr) callback(the().data.load(), domain, number, data);
}

bool any_of(CUpti_CallbackDomain domain) {
  for (const auto& on : the().enabled[domain]) {
    if (on.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

uint32_t numbers_in(CUpti_CallbackDomain domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return CUPTI_DRIVER_TRACE_CBID_SIZE;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return CUPTI_RUNTIME_TRACE_CBID_SIZE;
    case CUPTI_CB_DOMAIN_RESOURCE:
      return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_STATE:
      return CUPTI_CBID_STATE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX:
      return 1;
    default:
      return 0;
  }
}

// `name`: of the new subscriber, or null. Where another one is there already its name goes to `old_name`, unless that is null.
CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* data, const char* name,
                      char* old_name, size_t old_bytes) {
  if (out == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Subscriber& s = the();
  std::lock_guard lock(s.mutex);
  if (s.taken || knobs().busy) {
    if (old_name != nullptr && old_bytes > 0)
      std::snprintf(old_name, old_bytes, "%s", knobs().busy ? kStranger : s.name);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  s.taken = true;
  std::snprintf(s.name, sizeof s.name, "%s", name != nullptr ? name : "");
  s.data.store(data);
  s.callback.store(callback, std::memory_order_release);
  *out = reinterpret_cast<CUpti_SubscriberHandle>(&s);
  return CUPTI_SUCCESS;
}

// Which callback a resource's fate is; 0: none.
uint32_t resource_number(ResourceNotice::Act act) {
  using Act = ResourceNotice::Act;
  switch (act) {
    case Act::context_created:
      return CUPTI_CBID_RESOURCE_CONTEXT_CREATED;
    case Act::context_destroyed:
      return CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
    case Act::stream_created:
      return CUPTI_CBID_RESOURCE_STREAM_CREATED;
    case Act::stream_destroyed:
      return CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    case Act::module_loaded:
      return CUPTI_CBID_RESOURCE_MODULE_LOADED;
    case Act::module_unloaded:
      return CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING;
    case Act::graph_created:
      return CUPTI_CBID_RESOURCE_GRAPH_CREATED;
    case Act::graph_destroyed:
      return CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING;
    case Act::graph_node_created:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
    case Act::graph_node_cloned:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    case Act::graph_node_destroyed:
      return CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING;
    case Act::graph_exec_created:
      return CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED;
    case Act::graph_exec_destroyed:
      return CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
  }
  return 0;
}

}  // namespace

namespace simgpu::cupti {

bool call_is_heard(bool runtime, uint32_t number) {
  return enabled(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, number);
}

void callback_call(const CallNotice& n, uint32_t number, bool entering) {
  const auto domain = n.runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  if (!enabled(domain, number)) return;
  CUpti_CallbackData data{};
  int result = n.result;
  data.callbackSite = entering ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionName = n.variant;
  data.functionReturnValue = entering ? nullptr : &result;
  data.context = n.context_handle;
  data.contextUid = n.context;
  data.correlationData = n.client;
  data.correlationId = n.correlation;
  call_back(domain, number, &data);
}

void callback_sync(const SyncNotice& n) {
  const bool stream = n.kind == SyncNotice::Kind::stream;
  if (!stream && n.kind != SyncNotice::Kind::context) return;
  const uint32_t number =
      stream ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED : CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
  if (!enabled(CUPTI_CB_DOMAIN_SYNCHRONIZE, number)) return;
  CUpti_SynchronizeData data{};
  data.context = n.context_handle;
  data.stream = n.stream_handle;
  call_back(CUPTI_CB_DOMAIN_SYNCHRONIZE, number, &data);
}

void callback_resource(const ResourceNotice& n) {
  const uint32_t number = resource_number(n.act);
  if (!enabled(CUPTI_CB_DOMAIN_RESOURCE, number)) return;
  CUpti_ModuleResourceData module{n.id, n.image_bytes, static_cast<const char*>(n.image)};
  CUpti_GraphData graph{};
  graph.graph = n.graph;
  graph.originalGraph = n.original_graph;
  graph.node = n.node;
  graph.originalNode = n.original_node;
  graph.nodeType = static_cast<CUgraphNodeType>(n.node_type);
  graph.graphExec = n.exec;
  CUpti_ResourceData data{};
  data.context = n.context;
  data.resourceHandle.stream = n.stream;
  const bool of_module = n.act == ResourceNotice::Act::module_loaded || n.act == ResourceNotice::Act::module_unloaded;
  const bool of_graph = n.act >= ResourceNotice::Act::graph_created;
  data.resourceDescriptor = of_module ? static_cast<void*>(&module) : of_graph ? static_cast<void*>(&graph) : nullptr;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, number, &data);
}

uint32_t callback_looks() {
  if (the().callback.load() == nullptr) return 0;
  uint32_t bits = 0;
  if (any_of(CUPTI_CB_DOMAIN_DRIVER_API)) bits |= look::driver_calls;
  if (any_of(CUPTI_CB_DOMAIN_RUNTIME_API)) bits |= look::runtime_calls;
  if (any_of(CUPTI_CB_DOMAIN_RESOURCE)) bits |= look::resources;
  if (any_of(CUPTI_CB_DOMAIN_SYNCHRONIZE)) bits |= look::syncs;
  return bits;
}

bool is_subscriber(CUpti_SubscriberHandle handle) { return is_the_one(handle); }

void forget_subscriber() {
  Subscriber& s = the();
  std::lock_guard lock(s.mutex);
  s.taken = false;
  s.callback.store(nullptr);
  for (auto& domain : s.enabled) {
    for (auto& on : domain) on.store(false);
  }
}

}  // namespace simgpu::cupti

CUPTI_SIM(cuptiSubscribe, driver, (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void* data),
          (subscriber, callback, data)) {
  return subscribe(subscriber, callback, data, nullptr, nullptr, 0);
}

#if CUPTI_API_VERSION >= 130000
CUPTI_SIM(cuptiSubscribe_v2, driver,
          (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void* data,
           CUpti_SubscriberParams* params),
          (subscriber, callback, data, params)) {
  if (params == nullptr) return subscribe(subscriber, callback, data, nullptr, nullptr, 0);
  return subscribe(subscriber, callback, data, params->subscriberName, params->oldSubscriberName,
                   params->oldSubscriberSize);
}
#endif

CUPTI_SIM(cuptiUnsubscribe, driver, (CUpti_SubscriberHandle subscriber), (subscriber)) {
  if (!is_the_one(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  forget_subscriber();
  looks_changed();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiEnableCallback, driver,
          (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId number),
          (enable, subscriber, domain, number)) {
  if (!is_the_one(subscriber) || number == 0 || number >= numbers_in(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  the().enabled[domain][number].store(enable != 0);
  looks_changed();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiEnableDomain, driver, (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain),
          (enable, subscriber, domain)) {
  if (!is_the_one(subscriber) || numbers_in(domain) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  for (uint32_t i = 1; i < numbers_in(domain); ++i) the().enabled[domain][i].store(enable != 0);
  looks_changed();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiEnableAllDomains, driver, (uint32_t enable, CUpti_SubscriberHandle subscriber), (enable, subscriber)) {
  if (!is_the_one(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  for (int domain = CUPTI_CB_DOMAIN_DRIVER_API; domain < CUPTI_CB_DOMAIN_SIZE; ++domain) {
    const uint32_t end = numbers_in(static_cast<CUpti_CallbackDomain>(domain));
    for (uint32_t i = 1; i < end; ++i) the().enabled[static_cast<size_t>(domain)][i].store(enable != 0);
  }
  looks_changed();
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetCallbackState, driver,
          (uint32_t * enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId number),
          (enable, subscriber, domain, number)) {
  if (enable == nullptr || !is_the_one(subscriber) || number >= numbers_in(domain))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = enabled(domain, number) ? 1 : 0;
  return CUPTI_SUCCESS;
}

CUPTI_SIM(cuptiGetCallbackName, nothing, (CUpti_CallbackDomain domain, uint32_t number, const char** name),
          (domain, number, name)) {
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (!runtime && domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_ERROR_NOT_SUPPORTED;
  *name = name_of(number, runtime);
  return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_SIM(cuptiSupportedDomains, nothing, (size_t * count, CUpti_DomainTable* table), (count, table)) {
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE};
  if (count == nullptr || table == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = std::size(domains);
  *table = domains;
  return CUPTI_SUCCESS;
}
