#include "interpose/device/device_collection.h"

#include <cstdlib>
#include <cstring>

#include "base/own_stack.h"
#include "cupti/loader.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/driver_query.h"
#include "interpose/lookup/elf_lookup.h"
#include "interpose/settings/environment.h"

namespace gputrace {
namespace {

struct Wanted {
  bool device = false;
  bool latency = false;
  bool environment = false;
  bool node_graphs = false;
  const char* library = nullptr;
  Bytes budget = 0;
};
constinit Wanted wanted{};
constinit std::atomic<u64> started_generation{0};

// Default streams that are recorded already: by context, and by thread where each has its own. When it is full the rest
// is not recorded, and their operations are matched without it.
constexpr u32 kDefaultStreams = 1024;
constinit std::atomic<u64> recorded_streams[kDefaultStreams]{};

bool first_sight(u64 context, u32 thread) {
  u64 key = (context ^ (u64{thread} << 48 | thread)) * 0x9e3779b97f4a7c15ull;
  key |= 1;
  for (u32 i = 0; i < 16; ++i) {
    std::atomic<u64>& place = recorded_streams[((key >> 40) + i) % kDefaultStreams];
    u64 there = 0;
    if (place.load(std::memory_order_relaxed) == key) return false;
    if (place.compare_exchange_strong(there, key, std::memory_order_relaxed)) return true;
    if (there == key) return false;
  }
  return false;
}

// A definition of ours, outside of any call of the program's.
FinishedCall no_call() {
  FinishedCall call{};
  call.generation = gate_generation();
  call.begin = call.end = record_ticks();
  return call;
}

u64 host_define_text(const char* text, u64 length) {
  const FinishedCall call = no_call();
  if (call.generation < kFirstGeneration) return 0;
  const Definitions lock;
  return lock.held() ? define_text(call, text, length) : 0;
}

bool host_define(void* record) {
  RecordHeader& header = *static_cast<RecordHeader*>(record);
  const FinishedCall call = no_call();
  if (call.generation < kFirstGeneration) return false;
  const Definitions lock;
  if (!lock.held()) return false;
  if (!header.begin) header.begin = header.end = call.begin;
  char* at = reserve_definition(header.size, call.end);
  if (!at) return false;
  std::memcpy(at, record, header.size);
  commit_definition(at, header.size, call.generation);
  return true;
}

i32 driver_version() {
  int version = 0;
  const auto ask = driver_query().cuDriverGetVersion;
  return ask && ask(&version) == CUDA_SUCCESS ? version : 0;
}

constexpr const char* kSanitizers[] = {"__tsan_init", "__msan_init"};

// libc's own, which no other interposer sees. But a sanitizer's functions crash on a thread that it did not see begin.
void* thread_create() {
  for (const char* runtime : kSanitizers) {
    if (find_function(ObjectRole::Other, runtime)) return find_function(ObjectRole::Other, "pthread_create");
  }
  return find_libc_function("pthread_create");
}

void start_collection(u64 generation) {
  LoadedObject driver, runtime;
  DeviceOptions options;
  options.generation = generation;
  options.library = wanted.library;
  options.driver_path = find_object(ObjectRole::Driver, driver) ? driver.path : nullptr;
  options.runtime_path = find_object(ObjectRole::Runtime, runtime) ? runtime.path : nullptr;
  options.driver_version = driver_version();
  options.buffer_budget = wanted.budget * 2;
  options.latency = wanted.latency;
  options.environment = wanted.environment;
  options.node_graphs = wanted.node_graphs;
  device_start(options,
               {find_libc_function, thread_create(), host_define_text, std::free, host_define, copied_variable});
}

void start() {
  u64 generation = gate_generation();
  if (!wanted.device || generation < kFirstGeneration) return;
  if (started_generation.exchange(generation, std::memory_order_acq_rel) == generation) return;
  ErrnoGuard guard;
  call_on_own_stack([](void* of) { start_collection(*static_cast<u64*>(of)); }, &generation);
}

}  // namespace

void configure_device_collection(const Options& options, Bytes ring_budget) {
  for (std::atomic<u64>& place : recorded_streams) place.store(0, std::memory_order_relaxed);
  wanted = {options.collect_device, options.latency, options.environment,
            options.node_graphs,    options.cupti,   ring_budget};
}

unsigned initializing_driver(unsigned flags) {
  if (wanted.latency) [[unlikely]]
    start();
  return flags;
}

void make_ready_for_context() { start(); }

void fetch_device_records() {
  ErrnoGuard guard;
  call_on_own_stack([](void*) { device_work_given(); }, nullptr);
}

void end_device_collection() { device_leave(); }

void device_window_moved() {
  ErrnoGuard guard;
  device_window_changed();
}

void stream_created(const FinishedCall& call, CUstream stream, u64 context) {
  if (!wanted.device || !call.ok()) return;
  ErrnoGuard guard;
  device_stream_seen(context, reinterpret_cast<u64>(stream), false, call.thread());
}

void default_stream_used(const FinishedCall& call, u64 context) {
  if (!wanted.device || !first_sight(context, call.per_thread ? call.thread() : 0)) return;
  ErrnoGuard guard;
  start();  // a context that came to be in a way that we do not see
  device_stream_seen(context, 0, call.per_thread, call.thread());
}

// The argument is evaluated before the call is open, too, and where it is not traced: nobody would end it then.
void listen_to_clones() {
  if (!wanted.node_graphs || !thread_state.slot || thread_state.generation != gate_generation()) return;
  const u32 depth = thread_state.slot->depth;
  if (depth == 0 || depth > kInFlightDepth) return;
  const InFlightCall& open = thread_state.slot->in_flight[depth - 1];
  if (!open.begin.load(std::memory_order_relaxed)) return;
  switch (open.call) {
    case kCall_cuGraphInstantiate:
    case kCall_cuGraphInstantiate_v2:
    case kCall_cuGraphInstantiateWithFlags:
    case kCall_cuGraphInstantiateWithParams:
    case kCall_cuGraphInstantiateWithParams_ptsz: {
      ErrnoGuard guard;
      device_graph_begins();
    }
  }
}

void exec_created(CUgraphExec exec) {
  if (!wanted.device) return;
  ErrnoGuard guard;
  work_given();  // its kernels are known from here on, so that their launches take the short way
  device_graph_seen(reinterpret_cast<u64>(exec));
}

void exec_node_created(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type) {
  if (!wanted.device) return;
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_MEMSET)
    return;
  ErrnoGuard guard;
  device_graph_node_seen(reinterpret_cast<u64>(exec), reinterpret_cast<u64>(node));
}

void exec_told() {
  if (!wanted.node_graphs) return;
  ErrnoGuard guard;
  device_graph_done();
}

}  // namespace gputrace
