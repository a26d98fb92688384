// Executable graphs as data: what instantiation keeps, and how it may change afterwards.
#include <algorithm>

#include "simgpu/driver/graph/graph.h"

namespace simgpu {

namespace {

bool waits_for_any_value(const MemoryOpsNode& node) {
  return std::any_of(node.operations.begin(), node.operations.end(), [](const CUstreamBatchMemOpParams& o) {
    return o.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || o.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  });
}

void sum_up(ExecBody& body) {
  body.node_count = body.nodes.size();
  body.needs_host = body.has_memory = false;
  for (const ExecNode& node : body.nodes) {
    if (std::holds_alternative<HostNode>(node.payload)) body.needs_host = true;
    const auto* kernel = std::get_if<KernelNode>(&node.payload);
    if (kernel != nullptr && kernel->launch.work) body.needs_host = true;
    const auto* event = std::get_if<EventNode>(&node.payload);
    if (event != nullptr && !event->record) body.needs_host = true;
    const auto* operations = std::get_if<MemoryOpsNode>(&node.payload);
    if (operations != nullptr && waits_for_any_value(*operations)) body.needs_host = true;
    if (std::holds_alternative<AllocNode>(node.payload) || std::holds_alternative<FreeNode>(node.payload)) {
      body.has_memory = true;
    }
    if (const auto* child = std::get_if<ChildNode>(&node.payload)) {
      body.node_count += child->body->node_count - 1;
      body.needs_host |= child->body->needs_host;
      body.has_memory |= child->body->has_memory;
    }
  }
}

bool same_copy_shape(const Copy& a, const Copy& b) {
  return a.kind == b.kind && a.dst.memory == b.dst.memory && a.src.memory == b.src.memory &&
         a.dst.device == b.dst.device && a.src.device == b.src.device;
}

// Replaces the node with `origin` in a copy of `body`; null: it is not there.
std::shared_ptr<ExecBody> changed_body(const ExecBody& body, uint64_t origin,
                                       const std::function<CUresult(ExecNode&)>& change, CUresult* result) {
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const auto* child = std::get_if<ChildNode>(&body.nodes[i].payload);
    if (body.nodes[i].origin != origin && child == nullptr) continue;
    ExecNode node = body.nodes[i];
    if (node.origin == origin) {
      *result = change(node);
    } else {
      std::shared_ptr<ExecBody> inner = changed_body(*child->body, origin, change, result);
      if (inner == nullptr) continue;
      std::get<ChildNode>(node.payload).body = std::move(inner);
    }
    auto copy = std::make_shared<ExecBody>(body);
    copy->nodes[i] = std::move(node);
    sum_up(*copy);
    return copy;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<ExecBody> make_body(const Graph& graph) {
  auto body = std::make_shared<ExecBody>();
  body->order = topological_order(graph);
  if (body->order.size() != graph.nodes.size()) return nullptr;
  std::unordered_map<const GraphNode*, size_t> index;
  for (size_t i = 0; i < graph.nodes.size(); ++i) index[graph.nodes[i]] = i;
  for (const GraphNode* node : graph.nodes) {
    ExecNode copy;
    copy.origin = reinterpret_cast<uint64_t>(node);
    copy.id = next_graph_node_id();
    if (looked_at(look::resources)) show_exec_node(*node, copy.id);
    copy.payload = node->payload;
    if (auto* child = std::get_if<ChildNode>(&copy.payload)) {
      child->body = make_body(*child->graph);
      child->graph = nullptr;
      if (child->body == nullptr) return nullptr;
    }
    for (const Edge& edge : node->dependencies) copy.dependencies.push_back(index[edge.node]);
    body->nodes.push_back(std::move(copy));
  }
  sum_up(*body);
  return body;
}

Graph* graph_from_body(const ExecBody& body) {
  Graph* graph = make_graph();
  if (graph == nullptr) return nullptr;
  for (const ExecNode& node : body.nodes) {
    Payload payload = node.payload;
    if (auto* child = std::get_if<ChildNode>(&payload)) {
      child->graph = graph_from_body(*child->body);
      child->body.reset();
    }
    if (!node.enabled) payload = EmptyNode{};
    add_node(*graph, std::move(payload), {});
  }
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    for (size_t before : body.nodes[i].dependencies) add_edge(*graph->nodes[before], *graph->nodes[i], {});
  }
  return graph;
}

const ExecNode* find_node(const ExecBody& body, uint64_t origin) {
  for (const ExecNode& node : body.nodes) {
    if (node.origin == origin) return &node;
    const auto* child = std::get_if<ChildNode>(&node.payload);
    const ExecNode* inner = child != nullptr ? find_node(*child->body, origin) : nullptr;
    if (inner != nullptr) return inner;
  }
  return nullptr;
}

namespace {

// The node, if nothing but this executable graph holds it (no launch under way) and what is known of its body does not
// depend on its parameters: then it may change where it is.
ExecNode* find_own_node(const std::shared_ptr<const ExecBody>& body, uint64_t origin) {
  if (body.use_count() != 1) return nullptr;
  for (ExecNode& node : const_cast<ExecBody&>(*body).nodes) {  // made by make_body, never const
    const auto* child = std::get_if<ChildNode>(&node.payload);
    if (node.origin == origin) {
      return child == nullptr && !std::holds_alternative<MemoryOpsNode>(node.payload) ? &node : nullptr;
    }
    ExecNode* inner = child != nullptr ? find_own_node(child->body, origin) : nullptr;
    if (inner != nullptr) return inner;
  }
  return nullptr;
}

}  // namespace

bool change_node(GraphExec& exec, uint64_t origin, const std::function<CUresult(ExecNode&)>& change, CUresult* result) {
  if (ExecNode* own = find_own_node(exec.body, origin)) {
    ExecNode changed = *own;
    *result = change(changed);
    if (*result == CUDA_SUCCESS) *own = std::move(changed);
    return true;
  }
  std::shared_ptr<ExecBody> body = changed_body(*exec.body, origin, change, result);
  if (body == nullptr) return false;
  if (*result == CUDA_SUCCESS) exec.body = std::move(body);
  return true;
}

CUgraphExecUpdateResult check_update(const Payload& from, const Payload& to) {
  if (type_of(from) != type_of(to)) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* a = std::get_if<KernelNode>(&from)) {
    const auto& b = std::get<KernelNode>(to);
    if (a->context != b.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (a->launch.cooperative != b.launch.cooperative) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  if (const auto* a = std::get_if<CopyNode>(&from)) {
    const auto& b = std::get<CopyNode>(to);
    if (a->context != b.context || !same_copy_shape(a->copy, b.copy))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* a = std::get_if<MemsetNode>(&from)) {
    const auto& b = std::get<MemsetNode>(to);
    if (a->params.ctx != b.params.ctx || a->memset.device != b.memset.device ||
        (a->params.height > 1) != (b.params.height > 1)) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  if (const auto* a = std::get_if<AllocNode>(&from)) {
    if (a->params.bytesize != std::get<AllocNode>(to).params.bytesize)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* a = std::get_if<MemoryOpsNode>(&from)) {
    if (a->operations.size() != std::get<MemoryOpsNode>(to).operations.size()) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

namespace {

void set_failure(UpdateFailure* failure, CUgraphExecUpdateResult result, GraphNode* node, GraphNode* from) {
  failure->result = result;
  failure->node = node;
  failure->from = from;
}

GraphNode* node_behind(const Graph& graph, size_t i) { return i < graph.nodes.size() ? graph.nodes[i] : nullptr; }

}  // namespace

std::shared_ptr<ExecBody> updated_body(const ExecBody& before, const Graph& graph, UpdateFailure* failure) {
  std::shared_ptr<ExecBody> body = make_body(graph);
  if (body == nullptr || body->nodes.size() != before.nodes.size()) {
    set_failure(failure, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr);
    return nullptr;
  }
  for (size_t i = 0; i < body->nodes.size(); ++i) {
    ExecNode& now = body->nodes[i];
    const ExecNode& then = before.nodes[i];
    std::vector<size_t> a = now.dependencies, b = then.dependencies;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b) {
      const size_t other = a.empty() ? SIZE_MAX : a.back();
      set_failure(failure, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node_behind(graph, i),
                  node_behind(graph, other));
      return nullptr;
    }
    if (const auto result = check_update(then.payload, now.payload); result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      set_failure(failure, result, node_behind(graph, i), nullptr);
      return nullptr;
    }
    if (auto* child = std::get_if<ChildNode>(&now.payload)) {
      const Graph& inner = *std::get<ChildNode>(graph.nodes[i]->payload).graph;
      child->body = updated_body(*std::get<ChildNode>(then.payload).body, inner, failure);
      if (child->body == nullptr) return nullptr;
    }
    if (std::holds_alternative<AllocNode>(now.payload)) now.payload = then.payload;  // the memory is the old one's
    now.origin = then.origin;  // nodes go by the handles of the graph that was instantiated
    now.id = then.id;
    now.enabled = then.enabled;
  }
  sum_up(*body);
  return body;
}

}  // namespace simgpu
