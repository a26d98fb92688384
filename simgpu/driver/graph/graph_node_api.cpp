// cuGraphAdd*Node, and nodes' parameters.
#include <cstring>

#include "simgpu/driver/graph/graph_add.h"

using namespace simgpu;

namespace {

template <class Node, class Make>
CUresult add_as(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count, Make&& make) {
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count, [&](Graph&, Payload& payload) {
    Node node;
    const CUresult result = make(&node);
    if (result == CUDA_SUCCESS) payload = std::move(node);
    return result;
  });
}

template <class Node, class Make>
CUresult set_as(CUgraphNode handle, Make&& make) {
  GraphLock lock;
  Node* node = payload_of<Node>(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node changed = *node;
  const CUresult result = make(&changed);
  if (result == CUDA_SUCCESS) *node = std::move(changed);
  return result;
}

CUDA_KERNEL_NODE_PARAMS_v2 second_version(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  std::memcpy(&wide, &params, sizeof params);
  return wide;
}

CUDA_MEMSET_NODE_PARAMS_v2 with_context(const CUDA_MEMSET_NODE_PARAMS_v1& params, CUcontext context) {
  return {params.dst, params.pitch, params.value, params.elementSize, params.width, params.height, context};
}

void tell(const KernelNode& node, CUDA_KERNEL_NODE_PARAMS_v2* out) {
  const KernelLaunch& launch = node.launch;
  out->func = handle_of(
      node.launch.function);  // that of the context, whatever handle the node was made with: as CUDA 13.0 does
  out->gridDimX = launch.grid.x;
  out->gridDimY = launch.grid.y;
  out->gridDimZ = launch.grid.z;
  out->blockDimX = launch.block.x;
  out->blockDimY = launch.block.y;
  out->blockDimZ = launch.block.z;
  out->sharedMemBytes = launch.dynamic_shared;
  out->kernelParams = node.arguments->empty() ? nullptr : node.arguments->data();
  out->extra = nullptr;
  out->kern = node.kernel;
  out->ctx = handle_of(node.context);
}

}  // namespace

SIM_API(cuGraphAddKernelNode, "cuGraphAddKernelNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         const CUDA_KERNEL_NODE_PARAMS_v1* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_as<KernelNode>(out, graph, dependencies, count,
                            [&](KernelNode* node) { return kernel_node_from(second_version(*params), call, node); });
}

SIM_API(cuGraphAddKernelNode_v2, "cuGraphAddKernelNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         const CUDA_KERNEL_NODE_PARAMS_v2* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_as<KernelNode>(out, graph, dependencies, count,
                            [&](KernelNode* node) { return kernel_node_from(*params, call, node); });
}

SIM_API(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams",
        (CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* params), (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<KernelNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  tell(*node, &wide);
  std::memcpy(params, &wide, sizeof *params);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeGetParams_v2, "cuGraphKernelNodeGetParams",
        (CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* params), (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<KernelNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  tell(*node, params);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetParams, "cuGraphKernelNodeSetParams",
        (CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1* params), (handle, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<KernelNode>(handle,
                            [&](KernelNode* node) { return kernel_node_from(second_version(*params), call, node); });
}

SIM_API(cuGraphKernelNodeSetParams_v2, "cuGraphKernelNodeSetParams",
        (CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v2* params), (handle, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<KernelNode>(handle, [&](KernelNode* node) { return kernel_node_from(*params, call, node); });
}

SIM_API(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute",
        (CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* out), (handle, id, out)) {
  GraphLock lock;
  const auto* node = payload_of<KernelNode>(handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelNode judge = *node;
  if (!apply_attribute(judge, id, CUlaunchAttributeValue{})) return CUDA_ERROR_INVALID_VALUE;
  const auto found = node->attributes.find(id);
  *out = found != node->attributes.end() ? found->second : CUlaunchAttributeValue{};
  if (found == node->attributes.end() && id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    out->clusterDim.x = node->launch.cluster.x;
    out->clusterDim.y = node->launch.cluster.y;
    out->clusterDim.z = node->launch.cluster.z;
  }
  return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetAttribute, "cuGraphKernelNodeSetAttribute",
        (CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value), (handle, id, value)) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<KernelNode>(handle, [&](KernelNode* node) {
    if (!apply_attribute(*node, id, *value)) return CUDA_ERROR_INVALID_VALUE;
    return check_launch(node->launch);
  });
}

SIM_API(cuGraphKernelNodeCopyAttributes, "cuGraphKernelNodeCopyAttributes", (CUgraphNode dst, CUgraphNode src),
        (dst, src)) {
  GraphLock lock;
  const auto* from = payload_of<KernelNode>(src);
  auto* to = payload_of<KernelNode>(dst);
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (from->context != to->context) return CUDA_ERROR_INVALID_CONTEXT;
  KernelNode changed = *to;
  for (const auto& [id, value] : from->attributes) apply_attribute(changed, id, value);
  if (const CUresult result = check_launch(changed.launch); result != CUDA_SUCCESS) return result;
  *to = std::move(changed);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, const CUDA_MEMCPY3D* params,
         CUcontext context),
        (out, graph, dependencies, count, params, context)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_as<CopyNode>(out, graph, dependencies, count,
                          [&](CopyNode* node) { return copy_node_from(*params, context, call, node); });
}

SIM_API(cuGraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", (CUgraphNode handle, CUDA_MEMCPY3D* params),
        (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<CopyNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = node->description;
  return CUDA_SUCCESS;
}

SIM_API(cuGraphMemcpyNodeSetParams, "cuGraphMemcpyNodeSetParams", (CUgraphNode handle, const CUDA_MEMCPY3D* params),
        (handle, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<CopyNode>(
      handle, [&](CopyNode* node) { return copy_node_from(*params, handle_of(node->context), call, node); });
}

SIM_API(cuGraphAddMemsetNode, "cuGraphAddMemsetNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context),
        (out, graph, dependencies, count, params, context)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_as<MemsetNode>(out, graph, dependencies, count, [&](MemsetNode* node) {
    return memset_node_from(with_context(*params, context), call, node);
  });
}

SIM_API(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", (CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params),
        (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<MemsetNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(params, &node->params, sizeof *params);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphMemsetNodeSetParams, "cuGraphMemsetNodeSetParams",
        (CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* params), (handle, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<MemsetNode>(
      handle, [&](MemsetNode* node) { return memset_node_from(with_context(*params, node->params.ctx), call, node); });
}

SIM_API(cuGraphAddHostNode, "cuGraphAddHostNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
         const CUDA_HOST_NODE_PARAMS* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_as<HostNode>(out, graph, dependencies, count, [&](HostNode* node) {
    *node = {params->fn, params->userData};
    return CUDA_SUCCESS;
  });
}

SIM_API(cuGraphHostNodeGetParams, "cuGraphHostNodeGetParams", (CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params),
        (handle, params)) {
  GraphLock lock;
  const auto* node = payload_of<HostNode>(handle);
  if (node == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {node->function, node->data};
  return CUDA_SUCCESS;
}

SIM_API(cuGraphHostNodeSetParams, "cuGraphHostNodeSetParams", (CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* params),
        (handle, params)) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_as<HostNode>(handle, [&](HostNode* node) {
    *node = {params->fn, params->userData};
    return CUDA_SUCCESS;
  });
}

SIM_API(cuGraphAddEmptyNode, "cuGraphAddEmptyNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count),
        (out, graph, dependencies, count)) {
  return add_as<EmptyNode>(out, graph, dependencies, count, [](EmptyNode*) { return CUDA_SUCCESS; });
}

SIM_API(cuGraphAddNode, "cuGraphAddNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraphNodeParams* params),
        (out, graph, dependencies, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  return add_made_node(out, graph, dependencies, nullptr, count,
                       [&](Graph& g, Payload& payload) { return payload_from(*params, g, call, &payload); });
}

SIM_API(cuGraphAddNode_v2, "cuGraphAddNode",
        (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* data, size_t count,
         CUgraphNodeParams* params),
        (out, graph, dependencies, data, count, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  return add_made_node(out, graph, dependencies, data, count,
                       [&](Graph& g, Payload& payload) { return payload_from(*params, g, call, &payload); });
}

SIM_API(cuGraphNodeSetParams, "cuGraphNodeSetParams", (CUgraphNode handle, CUgraphNodeParams* params),
        (handle, params)) {
  GraphLock lock;
  GraphNode* node = live<GraphNode>(handle);
  if (node == nullptr || params == nullptr || params->type != type_of(node->payload)) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = params->type;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE || type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Payload changed = node->payload;
  const CUresult result = payload_from(*params, *node->graph, call, &changed);
  if (result == CUDA_SUCCESS) node->payload = std::move(changed);
  return result;
}
