// What device operations count for, as the timeline knows it: kernels and their functions, groups of copies, contexts, the
// nodes of graphs. The pass tells of each when it comes to know it, by its own numbers (0, 1, 2, … of each kind); what
// device records alone lead to (the kernel of a graph's node, or one that nobody launched) is made here.
//   · An entry that was made here and is told later stays one entry, in its place.
//   · One thread. Memory: O(kernels, functions, copies, contexts, nodes that exist).
#pragma once

#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/facts/timeline_facts.h"
#include "analysis/timeline/device_shapes.h"

namespace gputrace {

class Targets {
 public:
  explicit Targets(TimelineFacts& facts) : facts_(facts) {}

  // Told by the pass, in its order; all numbers are the pass's.
  void function_came();
  void name_function(u32 function, std::string_view symbol);
  // Its module was unloaded.
  void function_is_gone(u32 function);
  void kernel_came(const KernelShape& shape);
  void copies_came(const CopyKey& key);
  void context_came(i32 device);
  void context_is_on(u32 context, i32 device) { facts_.contexts[contexts_[context]].device = device; }
  // A version of an executable graph, as GraphTable numbers them. `own_nodes` false: an update from another graph; its nodes are
  // not those whose clones CUPTI names, though a handle may be the same.
  void graph_is_new(u64 exec, u32 version, bool own_nodes);
  // Replays of a version may be told after it went: the last ones that went are kept.
  void graph_is_gone(u64 exec);
  // `function` kNone: no kernel node, or one whose function is not known. `origin`: from which it was captured; 0: not known.
  void node_is(u32 version, u64 node, u32 function, u32 origin);

  // The pass's number → the place in TimelineFacts, or what is known there.
  i32 device_of(u32 context) const {
    return context < contexts_.size() ? facts_.contexts[contexts_[context]].device : -1;
  }
  u32 kernel(u32 pass_number) const { return pass_number == kNone ? kNone : kernels_[pass_number]; }
  u32 copies(u32 pass_number) const { return pass_number == kNone ? kNone : copies_[pass_number]; }

  // Places for what a device record tells; made where there is none.
  // A kernel that is a graph's node, or was not joined (context kNone: the pass's number).
  struct NodeNames {
    u64 id = 0;              // CUPTI's
    u64 node = 0, exec = 0;  // CUgraphNode and CUgraphExec where they are known, else 0
    u64 version = 0;         // of the graph when it was launched; 0: not known, then the exec's newest one is meant
  };
  u32 kernel_of(const DeviceShape& shape, u32 context, const NodeNames& names);
  u32 copies_of(const DeviceShape& shape, bool in_graph);
  // From where a graph's node was captured, as far as it is told which node it is, or all that may be it agree; 0: not known.
  u32 origin_of(const DeviceShape& shape, const NodeNames& names);

  void learn_symbol(u32 function, std::string_view symbol);
  // Whether there were functions of that name, and none is left.
  bool all_gone(std::string_view symbol) const {
    const auto known = left_by_symbol_.find(symbol);
    return known != left_by_symbol_.end() && known->second == 0;
  }

 private:
  struct ShapeHash {
    std::size_t operator()(const KernelShape& shape) const { return hash_of(shape); }
  };

  struct NodeIs {
    u32 function = kNone;  // its place
    u32 origin = 0;
  };

  u32 make_function(u32 pass_number);
  void has_symbol(u32 function, std::string_view symbol);
  u32 function_of(const DeviceShape& shape, const NodeNames& names);
  u32 unjoined_function(std::string_view symbol);
  NodeIs in_graph(const DeviceShape& shape, const NodeNames& names);
  u32 context_on(i32 device);
  u32 kernel_at(const KernelShape& shape);
  u32 copies_at(const CopyKey& key);

  TimelineFacts& facts_;
  std::vector<u32> functions_, kernels_, copies_, contexts_;  // places, by the pass's numbers
  std::unordered_map<KernelShape, u32, ShapeHash> kernels_by_shape_;
  // A name may be a megabyte long, and as many functions as there is room for may have it: of long ones the ends are hashed.
  struct NameHash {
    std::size_t operator()(std::string_view name) const {
      constexpr std::size_t kEnd = 2048;
      const std::hash<std::string_view> hash;
      if (name.size() <= 2 * kEnd) return hash(name);
      return hash(name.substr(0, kEnd)) * 31 + hash(name.substr(name.size() - kEnd)) + name.size();
    }
  };
  struct SameName {
    bool operator()(std::string_view a, std::string_view b) const {
      return a.size() == b.size() && (a.data() == b.data() || a == b);
    }
  };
  std::unordered_map<std::string_view, u32, NameHash, SameName> newest_by_symbol_;
  // How many functions of a name are not gone.
  std::unordered_map<std::string_view, u32, NameHash, SameName> left_by_symbol_;
  u64 named_ = 0;  // how many functions got a name
  // The nodes of an executable graph. Devices report each under the id of its clone there. Where nobody told whose clone
  // that is, it is a node of a function of that name, and which one is certain only if all of those are of one function.
  struct Graph {
    std::unordered_map<u64, NodeIs> nodes;  // by handle
    std::unordered_map<std::string_view, NodeIs>
        by_symbol;  // asked for since a node or a name changed; kNone, kSeveral
    u64 named = 0;  // `named_` then
    bool own_nodes = true;
    bool gone = false;

    const NodeIs* told(u64 node) const {
      const auto known = own_nodes ? nodes.find(node) : nodes.end();
      return known == nodes.end() ? nullptr : &known->second;
    }
  };
  static constexpr u32 kSeveral = kNone - 1;
  NodeIs nodes_called(Graph& graph, std::string_view symbol) const;
  std::unordered_map<std::string_view, u32> unjoined_;  // functions of which it is not known which they are
  std::unordered_map<u64, Graph> graphs_;               // by version
  std::unordered_map<u64, u64> newest_;                 // version by exec
  struct Gone {
    u64 exec, version;
  };
  static constexpr std::size_t kMostGone = 64;
  std::deque<Gone> gone_;
  Graph* graph_of(const NodeNames& names);
};

}  // namespace gputrace
