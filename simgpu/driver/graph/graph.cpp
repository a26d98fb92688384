// Graphs as data: nodes, edges, clones.
#include "simgpu/driver/graph/graph.h"

#include <algorithm>
#include <mutex>

namespace simgpu {

namespace {

constinit std::mutex graph_mutex;
constinit thread_local unsigned lock_depth = 0;

struct LateCall {
  CUhostFn function;
  void* data;
};
std::vector<LateCall>& late_calls() {  // guarded by graph_mutex
  static auto* calls = new std::vector<LateCall>;
  return *calls;
}

bool same_edge(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

std::vector<Edge>::iterator find_edge(std::vector<Edge>& edges, const GraphNode& node, const CUgraphEdgeData& data) {
  return std::find_if(edges.begin(), edges.end(),
                      [&](const Edge& e) { return e.node == &node && same_edge(e.data, data); });
}

void drop_edges_to(std::vector<Edge>& edges, const GraphNode& node) {
  edges.erase(std::remove_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.node == &node; }), edges.end());
}

void free_payload(GraphNode& node) {
  auto* child = std::get_if<ChildNode>(&node.payload);
  if (child != nullptr && child->graph != nullptr) destroy_graph(*child->graph);
  node.payload = EmptyNode{};
}

}  // namespace

GraphLock::GraphLock() {
  if (lock_depth++ == 0) graph_mutex.lock();
}

GraphLock::~GraphLock() {
  if (--lock_depth != 0) return;
  std::vector<LateCall> calls;
  calls.swap(late_calls());
  graph_mutex.unlock();
  for (const LateCall& call : calls) {
    thread_state.in_host_function = true;
    call.function(call.data);
    thread_state.in_host_function = false;
  }
}

void GraphLock::run_after_unlock(CUhostFn function, void* data) {
  if (function != nullptr) late_calls().push_back({function, data});
}

CUgraphNodeType type_of(const Payload& payload) {
  struct Visitor {
    CUgraphNodeType operator()(const KernelNode&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyNode&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const MemsetNode&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostNode&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const ChildNode&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const EmptyNode&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const EventNode& n) const {
      return n.record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    }
    CUgraphNodeType operator()(const AllocNode&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeNode&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const MemoryOpsNode&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  };
  return std::visit(Visitor{}, payload);
}

uint32_t next_graph_id() {
  static constinit std::atomic<uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

uint64_t next_graph_node_id() {
  static constinit std::atomic<uint64_t> next{(uint64_t{1} << 32) + 1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Graph* make_graph() {
  Graph* graph = create<Graph>();
  if (graph != nullptr && looked_at(look::resources))
    show_graph_object(ResourceNotice::Act::graph_created, graph, nullptr);
  return graph;
}

void release_user_object(UserObject& object, uint64_t count) {
  object.count -= std::min(object.count, count);
  if (object.count != 0) return;
  GraphLock::run_after_unlock(object.destroy, object.data);
  retire(&object);
}

void destroy_graph(Graph& graph) {
  if (looked_at(look::resources)) show_graph_object(ResourceNotice::Act::graph_destroyed, &graph, nullptr);
  const std::vector<GraphNode*> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (GraphNode* node : nodes) {
    free_payload(*node);
    retire(node);
  }
  for (const auto& [object, count] : graph.user_objects) release_user_object(*object, count);
  graph.user_objects.clear();
  retire(&graph);
}

GraphNode* add_node(Graph& graph, Payload payload, const std::vector<Edge>& dependencies) {
  GraphNode* node = create<GraphNode>();
  if (node == nullptr) return nullptr;
  node->graph = &graph;
  node->origin = reinterpret_cast<uint64_t>(node);
  node->payload = std::move(payload);
  if (auto* child = std::get_if<ChildNode>(&node->payload); child != nullptr && child->graph != nullptr) {
    child->graph->owner = node;
  }
  graph.nodes.push_back(node);
  for (const Edge& edge : dependencies) add_edge(*edge.node, *node, edge.data);
  if (looked_at(look::resources)) show_graph_node(ResourceNotice::Act::graph_node_created, *node);
  return node;
}

void destroy_node(GraphNode& node) {
  Graph& graph = *node.graph;
  for (GraphNode* other : graph.nodes) {
    drop_edges_to(other->dependencies, node);
    drop_edges_to(other->dependents, node);
  }
  graph.nodes.erase(std::remove(graph.nodes.begin(), graph.nodes.end(), &node), graph.nodes.end());
  free_payload(node);
  retire(&node);
}

bool add_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  if (find_edge(from.dependents, to, data) != from.dependents.end()) return false;
  from.dependents.push_back({&to, data});
  to.dependencies.push_back({&from, data});
  return true;
}

bool remove_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  const auto forward = find_edge(from.dependents, to, data);
  if (forward == from.dependents.end()) return false;
  from.dependents.erase(forward);
  to.dependencies.erase(find_edge(to.dependencies, from, data));
  return true;
}

std::vector<size_t> topological_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, size_t> index;
  std::vector<size_t> open(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) index[graph.nodes[i]] = i;
  std::vector<size_t> order;
  order.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    open[i] = graph.nodes[i]->dependencies.size();
    if (open[i] == 0) order.push_back(i);
  }
  for (size_t done = 0; done < order.size(); ++done) {
    for (const Edge& edge : graph.nodes[order[done]]->dependents) {
      const size_t next = index[edge.node];
      if (--open[next] == 0) order.push_back(next);
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

bool holds_memory_nodes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode* node) {
    const auto* child = std::get_if<ChildNode>(&node->payload);
    return std::holds_alternative<AllocNode>(node->payload) || std::holds_alternative<FreeNode>(node->payload) ||
           (child != nullptr && holds_memory_nodes(*child->graph));
  });
}

Graph* clone_graph(const Graph& graph, GraphNode* owner) {
  Graph* clone = make_graph();
  if (clone == nullptr) return nullptr;
  clone->owner = owner;
  clone->cloned_from = const_cast<Graph*>(&graph);
  std::unordered_map<const GraphNode*, GraphNode*> twin;
  for (const GraphNode* node : graph.nodes) {
    Payload payload = node->payload;
    if (auto* child = std::get_if<ChildNode>(&payload)) child->graph = clone_graph(*child->graph, nullptr);
    GraphNode* copy = add_node(*clone, std::move(payload), {});
    if (copy == nullptr) return nullptr;
    copy->origin = node->origin;
    twin[node] = copy;
  }
  for (const GraphNode* node : graph.nodes) {
    for (const Edge& edge : node->dependencies) add_edge(*twin[edge.node], *twin[node], edge.data);
  }
  for (const auto& [object, count] : graph.user_objects) {
    object->count += count;
    clone->user_objects[object] = count;
  }
  return clone;
}

}  // namespace simgpu
