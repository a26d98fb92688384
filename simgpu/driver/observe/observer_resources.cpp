// Contexts, streams, modules and graphs as they come and go, shown to whoever looks.
#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"
#include "simgpu/driver/memory/pool.h"
#include "simgpu/driver/observe/observe.h"

namespace simgpu {

namespace {

ResourceNotice notice_of(ResourceNotice::Act act) {
  ResourceNotice notice{};
  notice.act = act;
  notice.correlation = thread_state.call_correlation;
  notice.begin = thread_state.call_begin;
  notice.end = now_ns();
  return notice;
}

void put_context(ResourceNotice& notice, const Context& context) {
  notice.context = handle_of(&context);
  notice.context_id = static_cast<uint32_t>(context.id);
  notice.device = static_cast<uint32_t>(context.device->ordinal);
}

}  // namespace

void show_pool(Call& call, PoolNotice::Act act, Pool& pool, uint64_t keep) {
  PoolNotice notice{};
  notice.act = act;
  notice.correlation = call.own_correlation();
  notice.device = static_cast<uint32_t>(pool.device->ordinal);
  notice.pool = reinterpret_cast<uint64_t>(&pool);
  notice.keep = keep;
  notice.at = call.begin();
  {
    std::lock_guard lock(pool.mutex);
    notice.reserved = pool.reserved;
    notice.used = pool.used;
    notice.threshold = pool.threshold;
  }
  observer().pool(notice);
}

void show_context(ResourceNotice::Act act, const Context& context) {
  ResourceNotice notice = notice_of(act);
  put_context(notice, context);
  notice.id = notice.context_id;
  observer().resource(notice);
}

void show_stream(ResourceNotice::Act act, const Stream& stream) {
  ResourceNotice notice = notice_of(act);
  put_context(notice, *stream.context);
  notice.id = static_cast<uint32_t>(stream.id);
  notice.stream = public_handle(&stream);
  notice.priority = static_cast<uint32_t>(stream.priority);
  notice.stream_flag = (stream.flags & CU_STREAM_NON_BLOCKING) != 0 ? 2 : 1;
  observer().resource(notice);
}

void show_module(ResourceNotice::Act act, const Module& module) {
  ResourceNotice notice = notice_of(act);
  put_context(notice, *module.context);
  const std::vector<std::byte>& bytes = module.image->loaded.bytes;
  notice.id = static_cast<uint32_t>(reinterpret_cast<uint64_t>(&module) >> 4);
  notice.image = bytes.data();
  notice.image_bytes = bytes.size();
  for (const auto& kernel : module.image->kernels()) notice.compiled |= !kernel.registers;
  observer().resource(notice);
}

void show_graph_object(ResourceNotice::Act act, const Graph* graph, const GraphExec* exec) {
  ResourceNotice notice = notice_of(act);
  notice.id = graph != nullptr ? graph->id : exec->id;
  notice.graph = graph != nullptr ? handle_of(graph) : nullptr;
  notice.exec = exec != nullptr ? handle_of(exec) : nullptr;
  if (graph != nullptr && graph->cloned_from != nullptr) notice.original_graph = handle_of(graph->cloned_from);
  observer().resource(notice);
}

void show_graph_node(ResourceNotice::Act act, const GraphNode& node) {
  ResourceNotice notice = notice_of(act);
  notice.graph = handle_of(node.graph);
  notice.node = handle_of(&node);
  notice.node_type = static_cast<int>(type_of(node.payload));
  observer().resource(notice);
}

void show_exec_node(const GraphNode& original, uint64_t id) {
  GraphNode* clone = create<GraphNode>();
  if (clone == nullptr) return;
  clone->id = id;
  ResourceNotice notice = notice_of(ResourceNotice::Act::graph_node_cloned);
  notice.graph = notice.original_graph = handle_of(original.graph);
  notice.node = handle_of(clone);
  notice.original_node = handle_of(&original);
  notice.node_type = static_cast<int>(type_of(original.payload));
  observer().resource(notice);
  retire(clone);
}

}  // namespace simgpu
