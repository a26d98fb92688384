// cuGraphInstantiate*, cuGraphExec*, cuGraphLaunch and what belongs to executable graphs.
#include <cstring>

#include "simgpu/driver/graph/capture.h"
#include "simgpu/driver/graph/graph.h"

using namespace simgpu;

namespace {

constexpr uint64_t kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                                 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

// Memory nodes belong to one executable graph at a time. False: another one has them.
bool claim_memory(const ExecBody& body, bool claim) {
  for (const ExecNode& node : body.nodes) {
    if (const auto* child = std::get_if<ChildNode>(&node.payload)) {
      if (!claim_memory(*child->body, claim)) return false;
    }
    const auto* alloc = std::get_if<AllocNode>(&node.payload);
    if (alloc == nullptr) continue;
    if (claim && alloc->memory->instantiated) return false;
    alloc->memory->instantiated = claim;
  }
  return true;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, uint64_t flags) {
  if (out == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  Graph* graph = live<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (graph->capture_target) return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<ExecBody> body = make_body(*graph);
  if (body == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (body->has_memory && !claim_memory(*body, true)) return CUDA_ERROR_NOT_SUPPORTED;
  GraphExec* exec = create<GraphExec>();
  if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->flags = flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
  exec->body = std::move(body);
  for (const auto& [object, count] : graph->user_objects) {
    object->count += count;
    exec->user_objects[object] = count;
  }
  if (looked_at(look::resources)) show_graph_object(ResourceNotice::Act::graph_exec_created, graph, exec);
  *out = handle_of(exec);
  return CUDA_SUCCESS;
}

CUresult instantiate_logged(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log, size_t bytes) {
  GraphLock lock;
  const CUresult result = instantiate(out, graph, 0);
  const char* said = result == CUDA_SUCCESS ? "" : "the graph cannot be instantiated";
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && bytes != 0) {
    std::strncpy(log, said, bytes - 1);
    log[bytes - 1] = '\0';
  }
  return result;
}

CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, UpdateFailure* failure) {
  failure->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  GraphExec* exec = live<GraphExec>(exec_handle);
  const Graph* graph = live<Graph>(graph_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  failure->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  std::shared_ptr<ExecBody> body = updated_body(*exec->body, *graph, failure);
  if (body == nullptr) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->body = std::move(body);
  return CUDA_SUCCESS;
}

// Sets the parameters of one node of an executable graph: make(payload) judges and changes.
template <class Node, class Make>
CUresult set_in_exec(CUgraphExec handle, CUgraphNode node, Make&& make) {
  GraphLock lock;
  GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  const auto change = [&](ExecNode& target) {
    const Node* before = std::get_if<Node>(&target.payload);
    if (before == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Node changed = *before;
    if (const CUresult made = make(&changed); made != CUDA_SUCCESS) return made;
    Payload payload = std::move(changed);
    if (check_update(target.payload, payload) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    target.payload = std::move(payload);
    return CUDA_SUCCESS;
  };
  return change_node(*exec, reinterpret_cast<uint64_t>(node), change, &result) ? result : CUDA_ERROR_INVALID_VALUE;
}

bool can_be_disabled(const Payload& payload) {
  return std::holds_alternative<KernelNode>(payload) || std::holds_alternative<CopyNode>(payload) ||
         std::holds_alternative<MemsetNode>(payload);
}

}  // namespace

SIM_API(cuGraphInstantiate, "cuGraphInstantiate",
        (CUgraphExec * out, CUgraph graph, CUgraphNode* error_node, char* log, size_t bytes),
        (out, graph, error_node, log, bytes)) {
  return instantiate_logged(out, graph, error_node, log, bytes);
}

SIM_API(cuGraphInstantiate_v2, "cuGraphInstantiate",
        (CUgraphExec * out, CUgraph graph, CUgraphNode* error_node, char* log, size_t bytes),
        (out, graph, error_node, log, bytes)) {
  return instantiate_logged(out, graph, error_node, log, bytes);
}

SIM_API(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",
        (CUgraphExec * out, CUgraph graph, unsigned long long flags), (out, graph, flags)) {
  GraphLock lock;
  return instantiate(out, graph, flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD});
}

SIM_API_PTSZ(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams",
             (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), (out, graph, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  const Graph* source = live<Graph>(graph);
  if (source != nullptr && !source->nodes.empty() && topological_order(*source).empty()) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    params->hErrNode_out = handle_of(source->nodes.front());
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = instantiate(out, graph, params->flags);
  if (result == CUDA_SUCCESS) params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return result;
}

SIM_API(cuGraphExecGetFlags, "cuGraphExecGetFlags", (CUgraphExec handle, cuuint64_t* flags), (handle, flags)) {
  GraphLock lock;
  const GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

SIM_API(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec handle), (handle)) {
  GraphLock lock;
  GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (looked_at(look::resources)) show_graph_object(ResourceNotice::Act::graph_exec_destroyed, nullptr, exec);
  claim_memory(*exec->body, false);
  for (const auto& [object, count] : exec->user_objects) release_user_object(*object, count);
  exec->body.reset();
  retire(exec);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphExecUpdate, "cuGraphExecUpdate",
        (CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result_out),
        (exec, graph, error_node, result_out)) {
  GraphLock lock;
  UpdateFailure failure;
  const CUresult result = update(exec, graph, &failure);
  if (error_node != nullptr) *error_node = failure.node != nullptr ? handle_of(failure.node) : nullptr;
  if (result_out != nullptr) *result_out = failure.result;
  return result;
}

SIM_API(cuGraphExecUpdate_v2, "cuGraphExecUpdate", (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info),
        (exec, graph, info)) {
  GraphLock lock;
  UpdateFailure failure;
  const CUresult result = update(exec, graph, &failure);
  if (info != nullptr) {
    info->result = failure.result;
    info->errorNode = failure.node != nullptr ? handle_of(failure.node) : nullptr;
    info->errorFromNode = failure.from != nullptr ? handle_of(failure.from) : nullptr;
  }
  return result;
}

SIM_API(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params), (exec, node, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  std::memcpy(&wide, params, sizeof *params);
  return set_in_exec<KernelNode>(exec, node, [&](KernelNode* k) { return kernel_node_from(wide, call, k); });
}

SIM_API(cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params), (exec, node, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_in_exec<KernelNode>(exec, node, [&](KernelNode* k) { return kernel_node_from(*params, call, k); });
}

SIM_API(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context),
        (exec, node, params, context)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_in_exec<CopyNode>(exec, node, [&](CopyNode* c) { return copy_node_from(*params, context, call, c); });
}

SIM_API(cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context),
        (exec, node, params, context)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_in_exec<MemsetNode>(exec, node, [&](MemsetNode* m) {
    return memset_node_from(
        {params->dst, params->pitch, params->value, params->elementSize, params->width, params->height, context}, call,
        m);
  });
}

SIM_API(cuGraphExecHostNodeSetParams, "cuGraphExecHostNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params), (exec, node, params)) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_in_exec<HostNode>(exec, node, [&](HostNode* h) {
    *h = {params->fn, params->userData};
    return CUDA_SUCCESS;
  });
}

SIM_API(cuGraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, CUgraph child), (exec, node, child)) {
  return set_in_exec<ChildNode>(exec, node, [&](ChildNode* c) {
    const Graph* graph = live<Graph>(child);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    UpdateFailure failure;
    std::shared_ptr<ExecBody> body = updated_body(*c->body, *graph, &failure);
    if (body == nullptr) return CUDA_ERROR_INVALID_VALUE;
    c->body = std::move(body);
    return CUDA_SUCCESS;
  });
}

SIM_API(cuGraphExecEventRecordNodeSetEvent, "cuGraphExecEventRecordNodeSetEvent",
        (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event)) {
  return set_in_exec<EventNode>(
      exec, node, [&](EventNode* e) { return e->record ? event_node_from(event, true, e) : CUDA_ERROR_INVALID_VALUE; });
}

SIM_API(cuGraphExecEventWaitNodeSetEvent, "cuGraphExecEventWaitNodeSetEvent",
        (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event)) {
  return set_in_exec<EventNode>(exec, node, [&](EventNode* e) {
    return e->record ? CUDA_ERROR_INVALID_VALUE : event_node_from(event, false, e);
  });
}

SIM_API(cuGraphExecBatchMemOpNodeSetParams, "cuGraphExecBatchMemOpNodeSetParams",
        (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params), (exec, node, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_in_exec<MemoryOpsNode>(exec, node,
                                    [&](MemoryOpsNode* m) { return memory_ops_node_from(*params, call, m); });
}

SIM_API(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams",
        (CUgraphExec handle, CUgraphNode node, CUgraphNodeParams* params), (handle, node, params)) {
  GraphLock lock;
  GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr || node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = params->type;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  const Graph nowhere;
  const auto change = [&](ExecNode& target) {
    Payload payload = target.payload;
    if (type_of(payload) != type) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult made = payload_from(*params, nowhere, call, &payload); made != CUDA_SUCCESS) return made;
    if (check_update(target.payload, payload) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    target.payload = std::move(payload);
    return CUDA_SUCCESS;
  };
  return change_node(*exec, reinterpret_cast<uint64_t>(node), change, &result) ? result : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", (CUgraphExec handle, CUgraphNode node, unsigned enabled),
        (handle, node, enabled)) {
  GraphLock lock;
  GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  const auto change = [&](ExecNode& target) {
    if (!can_be_disabled(target.payload)) return CUDA_ERROR_INVALID_VALUE;
    target.enabled = enabled != 0;
    return CUDA_SUCCESS;
  };
  return change_node(*exec, reinterpret_cast<uint64_t>(node), change, &result) ? result : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphNodeGetEnabled, "cuGraphNodeGetEnabled", (CUgraphExec handle, CUgraphNode node, unsigned* enabled),
        (handle, node, enabled)) {
  GraphLock lock;
  const GraphExec* exec = live<GraphExec>(handle);
  if (exec == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ExecNode* found = find_node(*exec->body, reinterpret_cast<uint64_t>(node));
  if (found == nullptr || !can_be_disabled(found->payload)) return CUDA_ERROR_INVALID_VALUE;
  *enabled = found->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuGraphUpload, "cuGraphUpload", (CUgraphExec handle, CUstream stream), (handle, stream)) {
  GraphLock lock;
  if (live<GraphExec>(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* target = call.stream(stream);
  if (target == nullptr) return call.stream_error(stream);
  return capturing(*target) ? capture_refuses_sync(call, *target) : CUDA_SUCCESS;
}

SIM_API_PTSZ(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec handle, CUstream stream), (handle, stream)) {
  std::shared_ptr<const ExecBody> body;
  GraphExec* exec = nullptr;
  {
    GraphLock lock;
    exec = live<GraphExec>(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    body = exec->body;
  }
  Stream* target = call.stream(stream);
  if (target == nullptr) return call.stream_error(stream);
  if (capturing(*target)) return capture_graph_launch(call, *target, *body);
  if (CUresult refused = capture_refuses_legacy(call, *target); refused != CUDA_SUCCESS) return refused;
  return launch_graph(call, *exec, std::move(body), *target);
}
