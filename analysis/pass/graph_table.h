// Executable graphs: which nodes each one has at each moment of the pass, and how often that version was replayed.
// Replays are counted per version and multiplied out when the version changes, so a replay costs the same for 1 node or
// 10,000.
#pragma once

#include <unordered_map>

#include "analysis/facts/facts.h"

namespace gputrace {

class GraphTable {
 public:
  struct Node {
    u64 handle = 0;
    u32 kind = 0;       // GraphNodeKind
    KernelShape shape;  // kernel nodes; context not set
    u64 bytes = 0;
    u64 address = 0;  // memory nodes
    i32 device = -1;  // nodes that allocate
    u32 origin = 0;   // number of the CallOrigin from which it was captured; 0: not known
    u8 copy_kind = 0;
    bool disabled = false;
  };
  static constexpr u32 kKernelNode = static_cast<u32>(GraphNodeKind::Kernel);
  static constexpr u32 kCopyNode = static_cast<u32>(GraphNodeKind::Copy);
  static constexpr u32 kMemsetNode = static_cast<u32>(GraphNodeKind::Memset);
  static constexpr u32 kAllocNode = static_cast<u32>(GraphNodeKind::MemAlloc);
  static constexpr u32 kFreeNode = static_cast<u32>(GraphNodeKind::MemFree);

  explicit GraphTable(std::vector<Graph>& graphs) : graphs_(graphs) {}

  // `replayed(node, context, times)` is called for every node of a version that ends, and for all that are left by
  // finish().
  template <typename Replayed>
  void instantiated(const GraphInstantiate& record, Replayed&& replayed) {
    if (record.header.result != 0) return;
    settle(record.exec, replayed);
    begin_version(record);
  }
  template <typename Replayed>
  void node(const GraphNode& record, u32 function, Replayed&& replayed) {
    if (record.header.result != 0) return;
    if (record.flags & kNodeSet) settle(record.exec, replayed);
    put_node(record, function);
  }
  // In the window of the report or not: only what is counted has `counted`. Returns the graph's index.
  u32 launched(u64 exec, u32 context, bool counted, u64 call_ns);
  // The nodes of that graph that allocate or free, in the order in which the graph has them.
  template <typename Visit>
  void for_each_memory_node(u64 exec, Visit&& visit) const {
    const auto known = execs_.find(exec);
    if (known == execs_.end()) return;
    for (const u32 node : known->second.memory_nodes) {
      if (!known->second.nodes[node].disabled) visit(known->second.nodes[node]);
    }
  }
  // The newest version of an executable graph: instantiations and updates are numbered through, from 1. 0: the graph is not known.
  // `own_nodes`: they are those of which instantiation made clones; not so after an update from another graph.
  struct Version {
    u32 number = 0;
    bool own_nodes = true;
  };
  Version version_of(u64 exec) const {
    const auto known = execs_.find(exec);
    return known == execs_.end() ? Version{} : known->second.version;
  }
  // kNone or 0 where something is not known.
  struct NodeOf {
    u32 function = kNone;  // of a kernel node
    u32 origin = 0;        // from which it was captured
  };
  NodeOf node_of(u64 exec, u64 node) const;
  // A call made from there added a node to a graph, or named the one before it: the first one holds.
  void captured(const CapturedNode& record, u32 origin);
  void graph_gone(u64 graph) {
    by_graph_.erase(graph);
    const auto nodes = captured_.find(graph);
    if (nodes == captured_.end()) return;
    captured_nodes_ -= nodes->second.origins.size();
    captured_.erase(nodes);
  }
  template <typename Replayed>
  void exec_gone(u64 exec, Replayed&& replayed) {
    settle(exec, replayed);
    execs_.erase(exec);
  }
  template <typename Replayed>
  void finish(Replayed&& replayed) {
    for (auto& [handle, exec] : execs_) settle(exec, replayed);
  }

 private:
  struct Exec {
    u32 graph = kNone;
    u64 source = 0;  // graph that this version was made from
    Version version;
    std::vector<Node> nodes;
    std::unordered_map<u64, u32> by_handle;
    std::vector<u32> memory_nodes;         // in `nodes`
    std::unordered_map<u32, u64> replays;  // by context
  };

  template <typename Replayed>
  void settle(u64 exec, Replayed& replayed) {
    const auto it = execs_.find(exec);
    if (it != execs_.end()) settle(it->second, replayed);
  }
  template <typename Replayed>
  void settle(Exec& exec, Replayed& replayed) {
    for (const auto& [context, times] : exec.replays) {
      for (const Node& node : exec.nodes) {
        if (!node.disabled) replayed(node, context, times);
      }
    }
    exec.replays.clear();
  }
  void begin_version(const GraphInstantiate& record);
  void put_node(const GraphNode& record, u32 function);
  u32 graph_for(u64 graph);

  // From where nodes of graphs that still exist were captured. A capture that failed takes its graph along without a word, so
  // a new one of a graph of that name begins anew.
  struct Captured {
    u64 capture = 0;
    std::unordered_map<u64, u32> origins;  // by node
  };
  static constexpr std::size_t kMostCaptured = 1u << 20;

  std::vector<Graph>& graphs_;
  std::unordered_map<u64, u32> by_graph_;
  std::unordered_map<u64, Exec> execs_;
  std::unordered_map<u64, Captured> captured_;  // by graph
  std::size_t captured_nodes_ = 0;
  u32 versions_ = 0;
};

}  // namespace gputrace
