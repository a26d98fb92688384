#include "simgpu/cupti/activity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/cupti/callback.h"
#include "simgpu/cupti/calls.h"
#include "simgpu/cupti/collector.h"
#include "simgpu/cupti/entry.h"
#include "simgpu/cupti/knobs.h"
#include "simgpu/cupti/records.h"
#include "simgpu/missing/missing.h"

namespace simgpu::cupti {

namespace {

// One context's own word about a kind; it beats the word about all.
struct ContextRule {
  uint32_t context;
  CUpti_ActivityKind kind;
  bool on;
};

struct Kinds {
  std::array<std::atomic<bool>, CUPTI_ACTIVITY_KIND_COUNT> on{};
  std::array<std::array<std::atomic<bool>, kMostCalls>, 2> calls{};  // [runtime]
  std::array<std::atomic<int>, 2> calls_on{};                        // how many of `calls` are
  std::atomic<bool> has_rules{false};
  std::mutex mutex;
  std::vector<ContextRule> rules;
  std::atomic<bool> latency{false};
  std::atomic<int> thread_ids{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};
  std::atomic<uint64_t> device_buffer{0};  // bytes; 0: the knob's
  std::atomic<uint64_t> device_bytes{0};   // in the buffer that fills now
};

Kinds& kinds() {
  static auto* const kKinds = new Kinds;
  return *kKinds;
}

struct External {
  CUpti_ExternalCorrelationKind kind;
  uint64_t id;
};
thread_local std::vector<External>* external = nullptr;

constexpr CUpti_ActivityKind kModelled[] = {
    CUPTI_ACTIVITY_KIND_MEMCPY,          CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_KERNEL,          CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_RUNTIME,         CUPTI_ACTIVITY_KIND_DEVICE,
    CUPTI_ACTIVITY_KIND_CONTEXT,         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_OVERHEAD,        CUPTI_ACTIVITY_KIND_ENVIRONMENT,
    CUPTI_ACTIVITY_KIND_MEMCPY2,         CUPTI_ACTIVITY_KIND_STREAM,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_MEMORY2,         CUPTI_ACTIVITY_KIND_MEMORY_POOL,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE,     CUPTI_ACTIVITY_KIND_JIT,
};

bool modelled(CUpti_ActivityKind kind) {
  return std::find(std::begin(kModelled), std::end(kModelled), kind) != std::end(kModelled);
}

bool any_rule(CUpti_ActivityKind kind) {
  std::lock_guard lock(kinds().mutex);
  return std::any_of(kinds().rules.begin(), kinds().rules.end(),
                     [&](const ContextRule& r) { return r.kind == kind && r.on; });
}

bool wanted(CUpti_ActivityKind kind) { return kind_on(kind) || any_rule(kind); }

uint32_t thread_id() {
  if (kinds().thread_ids.load(std::memory_order_relaxed) == CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT)
    return static_cast<uint32_t>(pthread_self());
  static thread_local const auto kId = static_cast<uint32_t>(syscall(SYS_gettid));
  return kId;
}

// A model of CUPTI's own buffers on the device: when one is full it is emptied, and that is an overhead.
void count_device_bytes(size_t bytes) {
  Kinds& k = kinds();
  const uint64_t size = device_buffer();
  const uint64_t before = k.device_bytes.fetch_add(bytes);
  if (before + bytes < size) return;
  k.device_bytes.fetch_sub(std::min(before + bytes, size));
  if (!kind_on(CUPTI_ACTIVITY_KIND_OVERHEAD)) return;
  constexpr Nanos kFlushTakes = 20'000;
  const Nanos now = now_ns();
  record_buffer_flush(now, now + kFlushTakes, thread_id());
}

constexpr size_t kDeviceBytesPerRecord = 32;

// A node of a graph has a record of its own only where graphs as a whole have none.
bool hidden_by_graph(const OperationNotice& n) { return n.graph != 0 && kind_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE); }

void on_kernel(const KernelNotice& n) {
  const bool concurrent = kind_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, n.context);
  if ((!concurrent && !kind_on(CUPTI_ACTIVITY_KIND_KERNEL, n.context)) || hidden_by_graph(n)) return;
  record_kernel(n, concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL,
                kinds().latency.load());
  count_device_bytes(kDeviceBytesPerRecord);
  sample_environment(false);
}

void on_copy(const CopyNotice& n) {
  const auto kind = n.peer ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
  if (!kind_on(kind, n.context) || hidden_by_graph(n)) return;
  if (n.peer) {
    record_peer_copy(n);
  } else {
    record_copy(n);
  }
  count_device_bytes(kDeviceBytesPerRecord);
  sample_environment(false);
}

void on_memset(const MemsetNotice& n) {
  if (!kind_on(CUPTI_ACTIVITY_KIND_MEMSET, n.context) || hidden_by_graph(n)) return;
  record_memset(n);
  count_device_bytes(kDeviceBytesPerRecord);
  sample_environment(false);
}

void on_graph(const GraphNotice& n) {
  if (!kind_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, n.context)) return;
  record_graph(n);
  count_device_bytes(kDeviceBytesPerRecord);
  sample_environment(false);
}

void on_sync(const SyncNotice& n) {
  if (kind_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, n.context)) record_sync(n, 0);
  callback_sync(n);
}

void on_memory(const MemoryNotice& n) {
  if (kind_on(CUPTI_ACTIVITY_KIND_MEMORY2, n.context)) record_memory(n);
}

void on_pool(const PoolNotice& n) {
  if (kind_on(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) record_pool(n);
}

// A driver call of a runtime call that has a record: the two are one call with one number, and PyTorch takes two records for a mistake.
bool told_by_runtime(const CallNotice& n) {
  return n.inside_runtime && !knobs().separate_api_ids && kinds().calls_on[1].load(std::memory_order_relaxed) > 0;
}

// Calls that neither have a record nor call back are not timed, as CUPTI times none that nobody asked for.
bool wants(const char* variant, bool runtime) {
  const uint32_t number = number_of(variant, runtime);
  return call_on(runtime, number) || call_is_heard(runtime, number);
}

void on_enter(const CallNotice& n) { callback_call(n, number_of(n.variant, n.runtime), true); }

void on_leave(const CallNotice& n) {
  const uint32_t number = number_of(n.variant, n.runtime);
  callback_call(n, number, false);
  if (!call_on(n.runtime, number) || told_by_runtime(n)) return;
  if (external != nullptr && kind_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
    // The innermost id of each kind.
    for (size_t i = 0; i < external->size(); ++i) {
      const External& own = (*external)[i];
      const bool outer = std::any_of(external->begin() + static_cast<long>(i) + 1, external->end(),
                                     [&](const External& e) { return e.kind == own.kind; });
      if (!outer) record_external(own.kind, own.id, n.correlation);
    }
  }
  record_call(n, number, thread_id());
}

void on_resource(const ResourceNotice& n) {
  using Act = ResourceNotice::Act;
  if (n.act == Act::context_created && kind_on(CUPTI_ACTIVITY_KIND_CONTEXT)) record_context(n.id, n.device);
  if (n.act == Act::stream_created && kind_on(CUPTI_ACTIVITY_KIND_STREAM))
    record_stream(n.context_id, n.id, n.priority, static_cast<CUpti_ActivityStreamFlag>(n.stream_flag), n.correlation);
  if (n.act == Act::module_loaded && n.compiled && kind_on(CUPTI_ACTIVITY_KIND_JIT)) record_jit(n, thread_id());
  callback_resource(n);
}

constexpr Observer kObserver = {wants,    on_enter, on_leave,  on_kernel, on_copy,    on_memset,
                                on_graph, on_sync,  on_memory, on_pool,   on_resource};

void count_call(std::atomic<bool>& call, bool runtime, bool on) {
  if (call.exchange(on) == on) return;
  kinds().calls_on[runtime ? 1 : 0].fetch_add(on ? 1 : -1);
}

bool any_call(bool runtime) {
  return kind_on(runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER) ||
         kinds().calls_on[runtime ? 1 : 0].load() > 0;
}

}  // namespace

const Observer& activity_observer() { return kObserver; }

CUptiResult enable_kind(CUpti_ActivityKind kind, uint32_t context, bool on) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) return CUPTI_ERROR_INVALID_KIND;
  if (!modelled(kind)) {
    const std::string asked = "cuptiActivityEnable:" + std::to_string(kind);
    simgpu_missing(SIMGPU_SONAME, asked.c_str());
    return CUPTI_ERROR_NOT_SUPPORTED;
  }
  Kinds& k = kinds();
  {
    std::lock_guard lock(k.mutex);
    k.rules.erase(
        std::remove_if(k.rules.begin(), k.rules.end(),
                       [&](const ContextRule& r) { return r.kind == kind && (context == 0 || r.context == context); }),
        k.rules.end());
    if (context != 0) k.rules.push_back({context, kind, on});
    k.has_rules.store(!k.rules.empty());
  }
  if (context == 0) k.on[static_cast<size_t>(kind)].store(on);
  const bool calls = kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  if (calls && context == 0) {
    for (auto& call : k.calls[kind == CUPTI_ACTIVITY_KIND_RUNTIME ? 1 : 0]) {
      count_call(call, kind == CUPTI_ACTIVITY_KIND_RUNTIME, on);
    }
  }
  looks_changed();
  return CUPTI_SUCCESS;
}

bool kind_on(CUpti_ActivityKind kind) { return kinds().on[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }

bool kind_on(CUpti_ActivityKind kind, uint32_t context) {
  Kinds& k = kinds();
  if (k.has_rules.load(std::memory_order_relaxed)) {
    std::lock_guard lock(k.mutex);
    for (const ContextRule& rule : k.rules) {
      if (rule.kind == kind && rule.context == context) return rule.on;
    }
  }
  return kind_on(kind);
}

void enable_call(bool runtime, CUpti_CallbackId call, bool on) {
  if (call >= kMostCalls) return;
  count_call(kinds().calls[runtime ? 1 : 0][call], runtime, on);
  looks_changed();
}

bool call_on(bool runtime, CUpti_CallbackId call) {
  return call < kMostCalls && kinds().calls[runtime ? 1 : 0][call].load(std::memory_order_relaxed);
}

void sample_environment(bool at_once) {
  constexpr Nanos kEnvironmentPeriod = 10'000'000;
  static std::atomic<Nanos> last{0};
  static std::atomic<uint64_t> samples{0};
  if (!kind_on(CUPTI_ACTIVITY_KIND_ENVIRONMENT)) return;
  const Nanos now = now_ns();
  Nanos before = last.load();
  if (!at_once && now < before + kEnvironmentPeriod) return;
  if (!last.compare_exchange_strong(before, now)) return;
  const uint64_t sample = samples.fetch_add(1);
  for (uint32_t i = 0; i < driver()->devices(); ++i) record_environment(i, now, sample);
}

void set_latency_stamps(bool on) { kinds().latency.store(on); }

void looks_changed() {
  static auto* const kMutex = new std::mutex;
  std::lock_guard lock(*kMutex);
  uint32_t bits = callback_looks();
  if (any_call(false)) bits |= look::driver_calls;
  if (any_call(true)) bits |= look::runtime_calls;
  if (wanted(CUPTI_ACTIVITY_KIND_KERNEL) || wanted(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
      wanted(CUPTI_ACTIVITY_KIND_MEMCPY) || wanted(CUPTI_ACTIVITY_KIND_MEMCPY2) || wanted(CUPTI_ACTIVITY_KIND_MEMSET) ||
      wanted(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
    bits |= look::device;
  }
  if (wanted(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) bits |= look::syncs;
  if (wanted(CUPTI_ACTIVITY_KIND_MEMORY2) || wanted(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) bits |= look::memory;
  if (wanted(CUPTI_ACTIVITY_KIND_CONTEXT) || wanted(CUPTI_ACTIVITY_KIND_STREAM) || wanted(CUPTI_ACTIVITY_KIND_JIT))
    bits |= look::resources;
  driver()->set_looks(bits, knobs().separate_api_ids);
}

void forget_kinds() {
  Kinds& k = kinds();
  for (auto& on : k.on) on.store(false);
  for (auto& level : k.calls) {
    for (auto& call : level) call.store(false);
  }
  for (auto& count : k.calls_on) count.store(0);
  k.latency.store(false);
  {
    std::lock_guard lock(k.mutex);
    k.rules.clear();
    k.has_rules.store(false);
  }
  looks_changed();
}

void push_external(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  if (external == nullptr) external = new std::vector<External>;  // as long as the thread, or a little longer
  external->push_back({kind, id});
}

bool pop_external(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
  if (external == nullptr) return false;
  for (size_t i = external->size(); i-- > 0;) {
    if ((*external)[i].kind != kind) continue;
    if (id != nullptr) *id = (*external)[i].id;
    external->erase(external->begin() + static_cast<long>(i));
    return true;
  }
  return false;
}

void set_thread_ids(CUpti_ActivityThreadIdType type) { kinds().thread_ids.store(type); }
CUpti_ActivityThreadIdType thread_ids() { return static_cast<CUpti_ActivityThreadIdType>(kinds().thread_ids.load()); }
void set_device_buffer(uint64_t bytes) { kinds().device_buffer.store(bytes); }

uint64_t device_buffer() {
  const uint64_t set = kinds().device_buffer.load(std::memory_order_relaxed);
  return set != 0 ? set : knobs().device_buffer_bytes;
}

}  // namespace simgpu::cupti
