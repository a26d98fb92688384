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
  // The function of a kernel node; kNone: not known.
  u32 function_of(u64 exec, u64 node) const;
  void graph_gone(u64 graph) { by_graph_.erase(graph); }
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

  std::vector<Graph>& graphs_;
  std::unordered_map<u64, u32> by_graph_;
  std::unordered_map<u64, Exec> execs_;
};

}  // namespace gputrace
