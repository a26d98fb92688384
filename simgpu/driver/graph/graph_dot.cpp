// cuGraphDebugDotPrint: the graph as a Graphviz text.
#include <cstdio>

#include "simgpu/driver/graph/graph.h"

using namespace simgpu;

namespace {

const char* type_text(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "MEM_FREE";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return "BATCH_MEM_OP";
    default:
      return "NODE";
  }
}

std::string detail(const Payload& payload) {
  if (const auto* kernel = std::get_if<KernelNode>(&payload)) {
    const Dim3 &g = kernel->launch.grid, &b = kernel->launch.block;
    char geometry[128];
    std::snprintf(geometry, sizeof geometry, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", g.x, g.y, g.z, b.x, b.y, b.z,
                  kernel->launch.dynamic_shared);
    return "\\n" + kernel->launch.function->code->symbol + geometry;
  }
  if (const auto* copy = std::get_if<CopyNode>(&payload)) {
    return std::string("\\n") + text(copy->copy.kind) + " " + std::to_string(copy->copy.bytes()) + " bytes";
  }
  if (const auto* memset = std::get_if<MemsetNode>(&payload)) {
    return "\\n" + std::to_string(memset->memset.bytes()) + " bytes";
  }
  if (const auto* alloc = std::get_if<AllocNode>(&payload)) {
    return "\\n" + std::to_string(alloc->memory->bytes) + " bytes";
  }
  return "";
}

void print(std::FILE* out, const Graph& graph, int& clusters) {
  const int number = clusters++;
  std::fprintf(out, "subgraph cluster_%d {\nlabel=\"graph_%d\" graph[style=\"dashed\"];\n", number, number);
  for (const GraphNode* node : graph.nodes) {
    std::fprintf(out, "\"%p\"[style=\"solid\" shape=\"rectangle\" label=\"%s%s\"];\n", static_cast<const void*>(node),
                 type_text(type_of(node->payload)), detail(node->payload).c_str());
  }
  for (const GraphNode* node : graph.nodes) {
    for (const Edge& edge : node->dependents) {
      std::fprintf(out, "\"%p\" -> \"%p\"%s;\n", static_cast<const void*>(node), static_cast<const void*>(edge.node),
                   edge.data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ? "[style=\"dotted\"]" : "");
    }
  }
  std::fputs("}\n", out);
  for (const GraphNode* node : graph.nodes) {
    if (const auto* child = std::get_if<ChildNode>(&node->payload)) print(out, *child->graph, clusters);
  }
}

}  // namespace

SIM_API(cuGraphDebugDotPrint, "cuGraphDebugDotPrint", (CUgraph handle, const char* path, unsigned flags),
        (handle, path, flags)) {
  GraphLock lock;
  const Graph* graph = live<Graph>(handle);
  if (graph == nullptr || path == nullptr || flags >= 1u << 16) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* out = std::fopen(path, "we");
  if (out == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  int clusters = 0;
  std::fputs("digraph dot {\n", out);
  print(out, *graph, clusters);
  std::fputs("}\n", out);
  const bool written = std::ferror(out) == 0;
  return std::fclose(out) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
