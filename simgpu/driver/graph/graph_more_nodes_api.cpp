// cuGraphAdd*Node and parameters, the rarer kinds: child graphs, events, operations on values in memory.
#include "simgpu/driver/graph/graph_add.h"

using namespace simgpu;

namespace {

CUresult add_event(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event,
                   bool record) {
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph&, Payload& payload) {
    EventNode node;
    const CUresult result = event_node_from(event, record, &node);
    if (result == CUDA_SUCCESS) payload = node;
    return result;
  });
}

CUresult get_event(CUgraphNode handle, CUevent* out, bool record) {
  GraphLock lock;
  const auto* node = payload_of<EventNode>(handle);
  if (node == nullptr || node->record != record || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(node->event);
  return CUDA_SUCCESS;
}

CUresult set_event(CUgraphNode handle, CUevent event, bool record) {
  GraphLock lock;
  auto* node = payload_of<EventNode>(handle);
  if (node == nullptr || node->record != record) return CUDA_ERROR_INVALID_VALUE;
  return event_node_from(event, record, node);
}

}  // namespace

SIM_API(cuGraphAddChildGraphNode, "cuGraphAddChildGraphNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraph child),
        (out, graph, dependencies, count, child)) {
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph& parent, Payload& payload) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    return payload_from(params, parent, call, &payload);
  });
}

SIM_API(cuGraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", (CUgraphNode handle, CUgraph* out),
        (handle, out)) {
  GraphLock lock;
  const auto* node = payload_of<ChildNode>(handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(node->graph);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphAddEventRecordNode, "cuGraphAddEventRecordNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event),
        (out, graph, dependencies, count, event)) {
  return add_event(out, graph, dependencies, count, event, true);
}

SIM_API(cuGraphEventRecordNodeGetEvent, "cuGraphEventRecordNodeGetEvent", (CUgraphNode node, CUevent* out),
        (node, out)) {
  return get_event(node, out, true);
}

SIM_API(cuGraphEventRecordNodeSetEvent, "cuGraphEventRecordNodeSetEvent", (CUgraphNode node, CUevent event),
        (node, event)) {
  return set_event(node, event, true);
}

SIM_API(cuGraphAddEventWaitNode, "cuGraphAddEventWaitNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event),
        (out, graph, dependencies, count, event)) {
  return add_event(out, graph, dependencies, count, event, false);
}

SIM_API(cuGraphEventWaitNodeGetEvent, "cuGraphEventWaitNodeGetEvent", (CUgraphNode node, CUevent* out), (node, out)) {
  return get_event(node, out, false);
}

SIM_API(cuGraphEventWaitNodeSetEvent, "cuGraphEventWaitNodeSetEvent", (CUgraphNode node, CUevent event),
        (node, event)) {
  return set_event(node, event, false);
}

SIM_API(cuGraphAddBatchMemOpNode, "cuGraphAddBatchMemOpNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         const CUDA_BATCH_MEM_OP_NODE_PARAMS* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph&, Payload& payload) {
    MemoryOpsNode node;
    const CUresult result = memory_ops_node_from(*params, call, &node);
    if (result == CUDA_SUCCESS) payload = std::move(node);
    return result;
  });
}

SIM_API(cuGraphBatchMemOpNodeGetParams, "cuGraphBatchMemOpNodeGetParams",
        (CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* params), (handle, params)) {
  GraphLock lock;
  auto* node = payload_of<MemoryOpsNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {handle_of(node->context), static_cast<unsigned>(node->operations.size()), node->operations.data(),
             node->flags};
  return CUDA_SUCCESS;
}

SIM_API(cuGraphBatchMemOpNodeSetParams, "cuGraphBatchMemOpNodeSetParams",
        (CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params), (handle, params)) {
  GraphLock lock;
  auto* node = payload_of<MemoryOpsNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MemoryOpsNode changed;
  const CUresult result = memory_ops_node_from(*params, call, &changed);
  if (result == CUDA_SUCCESS) *node = std::move(changed);
  return result;
}
