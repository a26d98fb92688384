// Which clone an executable graph has of each node: device records name nodes by the ids of the clones, and only the
// callback of a subscriber tells whose clone each is. CUPTI has room for one subscriber, so we are it for the
// instantiating call alone, and only where nobody else is.
//
//   before the call   device_graph_begins(): subscribes
//   during it         heard(): node and id of its clone, on the instantiating thread
//   after it          device_graph_node_seen() for each node; device_graph_done() unsubscribes
//
// No lock is held while the program's call runs: it may take long, and may never come back (an exception, a cancelled
// thread). Whoever needs CUPTI meanwhile ends the subscription (stop_listening()): a client of the program's, our own
// thread, the next call that makes a graph.
#include <atomic>

#include "base/mapped_memory.h"
#include "base/raw_syscall.h"
#include "cupti/collector.h"
#include "cupti/untraced.h"

namespace gputrace {
namespace {

constexpr u32 kDomainResource = 3;      // CUPTI_CB_DOMAIN_RESOURCE
constexpr u32 kGraphNodeCloned = 20;    // CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
constexpr Nanos kPatience = 5'000'000;  // the program waits for no flush
constexpr u32 kMost = 1u << 20;         // nodes of one graph

// CUpti_ResourceData and CUpti_GraphData, as far as they are read.
struct ResourceData {
  void* context;
  void* handle;
  const void* descriptor;
};
struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
};

struct Clone {
  u64 node;  // that it is the clone of
  u64 id;
};

struct Listener {
  void* subscriber;         // nullptr: we are not subscribed; under the control lock
  std::atomic<u32> thread;  // that listens; 0: none does, or it was stopped. Set under the lock
  // The listening thread's.
  Clone* clones;  // kMost of them, once made
  u32 count;
  u32 next;  // where the last one was found: nodes are asked for in the order in which they were cloned, mostly
};
constinit Listener listener{};

bool listens() { return collector_is_ours() && listener.thread.load(std::memory_order_acquire) == own_thread_id(); }

// Under the lock. A thread that was cancelled in its call never says that it is done.
bool somebody_listens() {
  const u32 thread = listener.thread.load(std::memory_order_acquire);
  return thread != 0 && raw_syscall(SYS_tgkill, collector.pid, thread, 0) == 0;
}

void heard(void*, u32 domain, u32 callback, const void* data) {
  if (domain != kDomainResource || callback != kGraphNodeCloned || !data || !listens()) return;
  const auto* graph = static_cast<const GraphData*>(static_cast<const ResourceData*>(data)->descriptor);
  if (!graph || listener.count == kMost) return;
  UntracedScope untraced;
  u64 id = 0;
  if (collector.api.cuptiGetGraphNodeId(graph->node, &id) != kCuptiSuccess) return;
  listener.clones[listener.count++] = {reinterpret_cast<u64>(graph->original_node), id};
}

bool make_room() {
  if (listener.clones) return true;
  listener.clones = map_memory<Clone>(kMost * sizeof(Clone));
  return listener.clones != nullptr;
}

void subscribe() {
  const CuptiApi& api = collector.api;
  if (subscriber_is_known() || !make_room()) return;
  if (api.cuptiSubscribe(&listener.subscriber, heard, nullptr) != kCuptiSuccess) {
    listener.subscriber = nullptr;
    return;
  }
  listener.count = listener.next = 0;
  listener.thread.store(own_thread_id(), std::memory_order_release);
  if (api.cuptiEnableCallback(1, listener.subscriber, kDomainResource, kGraphNodeCloned) != kCuptiSuccess)
    stop_listening();
}

}  // namespace

void stop_listening() {
  listener.thread.store(0, std::memory_order_release);
  if (listener.subscriber) collector.api.cuptiUnsubscribe(listener.subscriber);
  listener.subscriber = nullptr;
}

bool stop_unheard() {
  if (somebody_listens()) return false;
  stop_listening();
  return true;
}

bool device_wants_nodes() {
  const CuptiApi& api = collector.api;
  return device_is_on() && collector.options.node_graphs && api.cuptiGetGraphNodeId && api.cuptiSubscribe &&
         api.cuptiUnsubscribe && api.cuptiEnableCallback;
}

void device_graph_begins() {
  if (!device_wants_nodes()) return;
  if (listens()) {  // since a call that it left by an exception, or the driver makes one within another
    listener.count = listener.next = 0;
    return;
  }
  UntracedScope untraced;
  for (const Nanos begin = monotonic_nanos(); lock_control(kPatience); sleep_briefly()) {
    const bool free = stop_unheard();
    if (free && device_wants_nodes()) subscribe();
    unlock_control();
    if (free || monotonic_nanos() - begin > kPatience) return;
  }
}

void device_graph_node_seen(u64 exec, u64 node) {
  if (!listens()) return;
  UntracedScope untraced;
  DeviceGraphNode record{};
  record.header.type = static_cast<u16>(RecordType::DeviceGraphNode);
  record.header.size = sizeof record;
  record.exec = exec;
  record.node = node;
  if (collector.api.cuptiGetGraphExecId)
    collector.api.cuptiGetGraphExecId(reinterpret_cast<void*>(exec), &record.graph);
  for (u32 i = 0; i < listener.count; ++i) {
    const u32 at = (listener.next + i) % listener.count;
    if (listener.clones[at].node != node) continue;
    listener.next = at + 1;
    record.id = listener.clones[at].id;
    record.header.begin = record.header.end = 0;
    collector.host.define(&record);
    return;
  }
}

void device_graph_done() {
  if (!listens()) return;
  UntracedScope untraced;
  listener.thread.store(0, std::memory_order_release);
  if (!lock_control(kPatience)) return;  // our thread has it, and unsubscribes in its next round
  stop_unheard();
  unlock_control();
}

}  // namespace gputrace
