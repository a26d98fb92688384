// cuGraph*: graphs, their nodes and edges as a structure.
#include <algorithm>

#include "simgpu/driver/graph/graph.h"

using namespace simgpu;

namespace {

CUresult live_nodes(const CUgraphNode* handles, size_t count, const Graph& graph, std::vector<GraphNode*>* out) {
  if (count != 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = live<GraphNode>(handles[i]);
    if (node == nullptr || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    out->push_back(node);
  }
  return CUDA_SUCCESS;
}

bool valid_edge(const CUgraphEdgeData& data) {
  return data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER && data.to_port == 0 &&
         data.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

bool plain(const CUgraphEdgeData& data) { return data.from_port == 0 && data.to_port == 0 && data.type == 0; }

// The usual way of these queries: without an array the count; with one, as many as fit, the rest cleared.
template <class Write>
CUresult answer_list(size_t have, size_t* count, bool wanted, Write&& write) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!wanted) {
    *count = have;
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) write(i, i < have);
  *count = std::min(*count, have);
  return CUDA_SUCCESS;
}

CUresult answer_nodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  return answer_list(nodes.size(), count, out != nullptr,
                     [&](size_t i, bool there) { out[i] = there ? handle_of(nodes[i]) : nullptr; });
}

// Edges of one side of a node. Without room for edge data, annotated edges cannot be given.
CUresult answer_edges(const std::vector<Edge>& edges, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  if (out != nullptr && data == nullptr &&
      !std::all_of(edges.begin(), edges.end(), [](const Edge& e) { return plain(e.data); })) {
    return CUDA_ERROR_LOSSY_QUERY;
  }
  return answer_list(edges.size(), count, out != nullptr, [&](size_t i, bool there) {
    out[i] = there ? handle_of(edges[i].node) : nullptr;
    if (data != nullptr) data[i] = there ? edges[i].data : CUgraphEdgeData{};
  });
}

CUresult get_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  GraphLock lock;
  const Graph* graph = live<Graph>(handle);
  if (graph == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  struct Pair {
    GraphNode* from;
    const Edge* edge;
  };
  std::vector<Pair> edges;
  for (GraphNode* node : graph->nodes) {
    for (const Edge& edge : node->dependents) {
      if (from != nullptr && data == nullptr && !plain(edge.data)) return CUDA_ERROR_LOSSY_QUERY;
      edges.push_back({node, &edge});
    }
  }
  return answer_list(edges.size(), count, from != nullptr, [&](size_t i, bool there) {
    from[i] = there ? handle_of(edges[i].from) : nullptr;
    to[i] = there ? handle_of(edges[i].edge->node) : nullptr;
    if (data != nullptr) data[i] = there ? edges[i].edge->data : CUgraphEdgeData{};
  });
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                      size_t count, bool add) {
  GraphLock lock;
  Graph* graph = live<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> sources, targets;
  if (const CUresult result = live_nodes(from, count, *graph, &sources); result != CUDA_SUCCESS) return result;
  if (const CUresult result = live_nodes(to, count, *graph, &targets); result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < count; ++i) {
    const CUgraphEdgeData edge = data != nullptr ? data[i] : CUgraphEdgeData{};
    if (!valid_edge(edge) || (add && sources[i] == targets[i])) return CUDA_ERROR_INVALID_VALUE;
    const bool changed = add ? add_edge(*sources[i], *targets[i], edge) : remove_edge(*sources[i], *targets[i], edge);
    if (!changed) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

CUresult dependencies_from(const Graph& graph, const CUgraphNode* handles, const CUgraphEdgeData* data, size_t count,
                           std::vector<Edge>* out) {
  std::vector<GraphNode*> nodes;
  if (const CUresult result = live_nodes(handles, count, graph, &nodes); result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < count; ++i) {
    const CUgraphEdgeData edge = data != nullptr ? data[i] : CUgraphEdgeData{};
    const bool twice = std::find(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes[i]) !=
                       nodes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!valid_edge(edge) || twice) return CUDA_ERROR_INVALID_VALUE;
    out->push_back({nodes[i], edge});
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIM_API(cuGraphCreate, "cuGraphCreate", (CUgraph * out, unsigned flags), (out, flags)) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  GraphLock lock;
  Graph* graph = make_graph();
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(graph);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroy, "cuGraphDestroy", (CUgraph handle), (handle)) {
  GraphLock lock;
  Graph* graph = live<Graph>(handle);
  if (graph == nullptr || graph->owner != nullptr || graph->capture_target) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(*graph);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphClone, "cuGraphClone", (CUgraph * out, CUgraph handle), (out, handle)) {
  GraphLock lock;
  const Graph* graph = live<Graph>(handle);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (holds_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  Graph* clone = clone_graph(*graph, nullptr);
  if (clone == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(clone);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeFindInClone, "cuGraphNodeFindInClone", (CUgraphNode * out, CUgraphNode original, CUgraph cloned),
        (out, original, cloned)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(original);
  const Graph* graph = live<Graph>(cloned);
  if (out == nullptr || node == nullptr || graph == nullptr || graph->cloned_from != node->graph) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                  [&](const GraphNode* n) { return n->origin == node->origin; });
  if (found == graph->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(*found);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetType, "cuGraphNodeGetType", (CUgraphNode handle, CUgraphNodeType* type), (handle, type)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = type_of(node->payload);
  return CUDA_SUCCESS;
}

SIM_API(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph handle, CUgraphNode* nodes, size_t* count),
        (handle, nodes, count)) {
  GraphLock lock;
  const Graph* graph = live<Graph>(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : answer_nodes(graph->nodes, nodes, count);
}

SIM_API(cuGraphGetRootNodes, "cuGraphGetRootNodes", (CUgraph handle, CUgraphNode* nodes, size_t* count),
        (handle, nodes, count)) {
  GraphLock lock;
  const Graph* graph = live<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> roots;
  std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(roots),
               [](const GraphNode* node) { return node->dependencies.empty(); });
  return answer_nodes(roots, nodes, count);
}

SIM_API(cuGraphGetEdges, "cuGraphGetEdges", (CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count),
        (graph, from, to, count)) {
  return get_edges(graph, from, to, nullptr, count);
}

SIM_API(cuGraphGetEdges_v2, "cuGraphGetEdges",
        (CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count),
        (graph, from, to, data, count)) {
  return get_edges(graph, from, to, data, count);
}

SIM_API(cuGraphNodeGetDependencies, "cuGraphNodeGetDependencies",
        (CUgraphNode handle, CUgraphNode* nodes, size_t* count), (handle, nodes, count)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : answer_edges(node->dependencies, nodes, nullptr, count);
}

SIM_API(cuGraphNodeGetDependencies_v2, "cuGraphNodeGetDependencies",
        (CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (handle, nodes, data, count)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : answer_edges(node->dependencies, nodes, data, count);
}

SIM_API(cuGraphNodeGetDependentNodes, "cuGraphNodeGetDependentNodes",
        (CUgraphNode handle, CUgraphNode* nodes, size_t* count), (handle, nodes, count)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : answer_edges(node->dependents, nodes, nullptr, count);
}

SIM_API(cuGraphNodeGetDependentNodes_v2, "cuGraphNodeGetDependentNodes",
        (CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (handle, nodes, data, count)) {
  GraphLock lock;
  const GraphNode* node = live<GraphNode>(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : answer_edges(node->dependents, nodes, data, count);
}

SIM_API(cuGraphAddDependencies, "cuGraphAddDependencies",
        (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to, count)) {
  return change_edges(graph, from, to, nullptr, count, true);
}

SIM_API(cuGraphAddDependencies_v2, "cuGraphAddDependencies",
        (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count),
        (graph, from, to, data, count)) {
  return change_edges(graph, from, to, data, count, true);
}

SIM_API(cuGraphRemoveDependencies, "cuGraphRemoveDependencies",
        (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to, count)) {
  return change_edges(graph, from, to, nullptr, count, false);
}

SIM_API(cuGraphRemoveDependencies_v2, "cuGraphRemoveDependencies",
        (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count),
        (graph, from, to, data, count)) {
  return change_edges(graph, from, to, data, count, false);
}

SIM_API(cuGraphDestroyNode, "cuGraphDestroyNode", (CUgraphNode handle), (handle)) {
  GraphLock lock;
  GraphNode* node = live<GraphNode>(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (holds_memory_nodes(*node->graph)) return CUDA_ERROR_NOT_SUPPORTED;
  destroy_node(*node);
  return CUDA_SUCCESS;
}
