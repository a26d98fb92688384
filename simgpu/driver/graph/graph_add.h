// What the calls that add nodes and read their parameters share. Under GraphLock.
#pragma once

#include "simgpu/driver/graph/graph.h"

namespace simgpu {

// Adds to the graph what make(Graph&, Payload&) yields.
template <class Make>
CUresult add_made_node(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                       size_t count, Make&& make) {
  Graph* graph = live<Graph>(handle);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Edge> edges;
  const CUresult valid = dependencies_from(*graph, dependencies, data, count, &edges);
  if (valid != CUDA_SUCCESS) return valid;
  Payload payload = EmptyNode{};
  if (const CUresult result = make(*graph, payload); result != CUDA_SUCCESS) return result;
  GraphNode* node = add_node(*graph, std::move(payload), edges);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(node);
  return CUDA_SUCCESS;
}

// The payload of a node, if it is of that kind.
template <class Node>
Node* payload_of(CUgraphNode handle) {
  GraphNode* node = live<GraphNode>(handle);
  return node == nullptr ? nullptr : std::get_if<Node>(&node->payload);
}

}  // namespace simgpu
