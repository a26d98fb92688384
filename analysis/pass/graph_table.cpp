#include "analysis/pass/graph_table.h"

namespace gputrace {
namespace {

constexpr u32 kUpdate = 1, kUnreadable = 2;         // GraphInstantiate::flags
constexpr u32 kSetOnExec = 1, kDisabledInExec = 2;  // GraphNode::flags

}  // namespace

u32 GraphTable::graph_for(u64 graph) {
  const auto [it, fresh] = by_graph_.emplace(graph, static_cast<u32>(graphs_.size()));
  if (fresh) graphs_.emplace_back().handle = graph;
  return it->second;
}

void GraphTable::begin_version(const GraphInstantiate& record) {
  Exec& exec = execs_[record.exec];
  exec.source = record.graph;
  const auto source = by_graph_.find(record.graph);
  exec.version.number = ++versions_;
  exec.version.own_nodes = !(record.flags & kUpdate) || (source != by_graph_.end() && source->second == exec.graph);
  const bool update = record.flags & kUpdate;
  // An update keeps the graph that the executable one was made from; a new instantiation replaces what had the handle
  // before.
  if (!update || exec.graph == kNone) exec.graph = graph_for(record.graph);
  exec.nodes.clear();
  exec.by_handle.clear();
  exec.memory_nodes.clear();
  Graph& graph = graphs_[exec.graph];
  ++(update ? graph.updates : graph.instantiations);
  graph.unreadable = record.flags & kUnreadable;
  graph.largest = kNone, graph.largest_threads = 0;
  graph.nodes = record.nodes;
  graph.kernel_nodes = record.kernel_nodes;
}

void GraphTable::put_node(const GraphNode& record, u32 function) {
  Node node;
  node.handle = record.node;
  node.kind = record.kind;
  node.bytes = record.bytes;
  node.address = record.address;
  node.device = record.kind == kAllocNode ? record.device : -1;
  node.copy_kind = record.copy_kind;
  node.disabled = record.flags & kDisabledInExec;
  node.shape.function = function;
  node.shape.grid[0] = record.grid_x, node.shape.grid[1] = record.grid_y, node.shape.grid[2] = record.grid_z;
  node.shape.block[0] = record.block_x, node.shape.block[1] = record.block_y, node.shape.block[2] = record.block_z;
  node.shape.dynamic_shared = record.dynamic_shared_bytes;
  Exec& exec = execs_[record.exec];
  if (node.kind == kKernelNode && exec.graph != kNone) {
    Graph& graph = graphs_[exec.graph];
    u64 threads = 1;
    for (int i = 0; i < 3; ++i) threads *= u64{node.shape.grid[i]} * node.shape.block[i];
    if (graph.largest == kNone || threads > graph.largest_threads)
      graph.largest = function, graph.largest_threads = threads;
  }
  const auto from = captured_.find(exec.source);
  if (from != captured_.end()) {
    const auto at = from->second.origins.find(record.node);
    if (at != from->second.origins.end()) node.origin = at->second;
  }
  const auto known = exec.by_handle.find(record.node);
  if ((record.flags & kSetOnExec) && known != exec.by_handle.end()) {
    node.origin = exec.nodes[known->second].origin;  // its graph may be gone
    exec.nodes[known->second] = node;
    return;
  }
  if (record.flags & kSetOnExec) return;  // a node of a graph whose instantiation was not seen
  exec.by_handle[record.node] = static_cast<u32>(exec.nodes.size());
  if (node.address && (node.kind == kAllocNode || node.kind == kFreeNode))
    exec.memory_nodes.push_back(static_cast<u32>(exec.nodes.size()));
  exec.nodes.push_back(node);
}

u32 GraphTable::launched(u64 handle, u32 context, bool counted, u64 call_ns) {
  Exec& exec = execs_[handle];
  if (exec.graph == kNone) {  // made before the trace began
    exec.graph = static_cast<u32>(graphs_.size());
    graphs_.emplace_back().unreadable = true;
  }
  if (!counted) return exec.graph;
  Graph& graph = graphs_[exec.graph];
  ++graph.launches;
  graph.launch_calls.add(call_ns);
  ++exec.replays[context];
  return exec.graph;
}

GraphTable::NodeOf GraphTable::node_of(u64 handle, u64 node) const {
  const auto exec = execs_.find(handle);
  if (exec == execs_.end()) return {};
  const auto known = exec->second.by_handle.find(node);
  if (known == exec->second.by_handle.end()) return {};
  const Node& is = exec->second.nodes[known->second];
  return {is.shape.function, is.origin};
}

void GraphTable::captured(const CapturedNode& record, u32 origin) {
  if (captured_nodes_ == kMostCaptured) return;
  Captured& graph = captured_[record.graph];
  if (graph.capture != record.capture) {
    captured_nodes_ -= graph.origins.size();
    graph.origins.clear();
  }
  graph.capture = record.capture;
  captured_nodes_ += graph.origins.emplace(record.node, origin).second;
}

}  // namespace gputrace
