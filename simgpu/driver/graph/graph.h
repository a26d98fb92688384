// CUDA graphs: nodes with their parameters, edges, what an executable graph keeps of them.
//
//   Graph ── GraphNode (payload, edges) ──instantiate──▶ GraphExec ── ExecBody ──launch──▶ timeline
//            ExecBody: payloads in creation order, dependencies as indexes, bodies of child graphs
//
// One lock, `GraphLock`, guards every graph, node, executable graph, user object and capture. What a launch needs is an
// ExecBody that it holds by reference and that nobody changes as long as it does: setting a node's parameters then
// replaces the body.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

struct Graph;
struct GraphNode;

// As CUPTI numbers them: graphs and executable graphs in one row, nodes in another, that needs 64 bits.
uint32_t next_graph_id();
uint64_t next_graph_node_id();

// Held by every exported call that touches graphs or captures. Destructors of user objects are the program's code: they
// run when the outermost lock of the thread has been given up.
class GraphLock {
 public:
  GraphLock();
  ~GraphLock();
  GraphLock(const GraphLock&) = delete;
  GraphLock& operator=(const GraphLock&) = delete;
  static void run_after_unlock(CUhostFn function, void* data);
};

// --- What nodes hold
// --------------------------------------------------------------------------------------------------

struct KernelNode {
  CUfunction function = nullptr;  // as passed; null where a CUkernel was
  CUkernel kernel = nullptr;
  Context* context = nullptr;
  KernelLaunch launch;
  // Argument values, one after the other by the kernel's own layout, and pointers to each: what GetParams returns.
  std::shared_ptr<std::vector<char>> values;
  std::shared_ptr<std::vector<void*>> arguments;
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
};

struct CopyNode {
  CUDA_MEMCPY3D description{};
  Context* context = nullptr;
  Copy copy;
};

struct MemsetNode {
  CUDA_MEMSET_NODE_PARAMS_v2 params{};
  Memset memset;
};

struct HostNode {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct ExecBody;
struct ChildNode {
  Graph* graph = nullptr;                // in a Graph: owned by the node
  std::shared_ptr<const ExecBody> body;  // in an ExecBody
};

struct EmptyNode {};

struct EventNode {
  Event* event = nullptr;  // not owned: the program keeps it alive while the graph is used
  bool record = false;     // else: wait
};

// Memory that a graph allocates: one address for all its launches.
struct GraphMemory {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  Device* device = nullptr;
  bool live = false;  // allocated by a launch and not freed since
  bool instantiated = false;
  std::shared_ptr<GraphMemory> itself;  // while live: a graph's end does not free what its launches have allocated
  ~GraphMemory();
};

struct AllocNode {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 params{};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphMemory> memory;
};

struct FreeNode {
  CUdeviceptr address = 0;
};

struct MemoryOpsNode {
  Context* context = nullptr;
  unsigned flags = 0;
  std::vector<CUstreamBatchMemOpParams> operations;
};

using Payload = std::variant<KernelNode, CopyNode, MemsetNode, HostNode, ChildNode, EmptyNode, EventNode, AllocNode,
                             FreeNode, MemoryOpsNode>;

CUgraphNodeType type_of(const Payload& payload);

// --- Graphs
// -----------------------------------------------------------------------------------------------------------

struct Edge {
  GraphNode* node = nullptr;
  CUgraphEdgeData data{};
};

struct GraphNode : Object {
  static constexpr uint64_t kTag = object_tag("sgGRNODE");
  using Handle = CUgraphNode;
  Graph* graph = nullptr;
  uint64_t origin = 0;  // the handle, as a number, of the node that this one was cloned from; else its own
  uint64_t id = next_graph_node_id();
  Payload payload;
  std::vector<Edge> dependencies;
  std::vector<Edge> dependents;
};

struct UserObject : Object {
  static constexpr uint64_t kTag = object_tag("sgUSROBJ");
  using Handle = CUuserObject;
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  uint64_t count = 0;
};

struct Graph : Object {
  static constexpr uint64_t kTag = object_tag("sgGRAPH ");
  using Handle = CUgraph;
  uint32_t id = next_graph_id();
  GraphNode* owner = nullptr;     // the child graph node that holds it; null: the program's own
  Graph* cloned_from = nullptr;   // identity only
  bool capture_target = false;    // a capture writes to it
  std::vector<GraphNode*> nodes;  // in creation order
  std::map<UserObject*, uint64_t> user_objects;
};

Graph* make_graph();
void destroy_graph(Graph& graph);
// Null: out of handles.
Graph* clone_graph(const Graph& graph, GraphNode* owner);
bool holds_memory_nodes(const Graph& graph);

// Adds a node after `dependencies`; checks nothing. Null: out of handles.
GraphNode* add_node(Graph& graph, Payload payload, const std::vector<Edge>& dependencies);
void destroy_node(GraphNode& node);
bool add_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);     // false: exists
bool remove_edge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);  // false: does not exist
// The nodes that a program names as dependencies of a new node in `graph`.
CUresult dependencies_from(const Graph& graph, const CUgraphNode* handles, const CUgraphEdgeData* data, size_t count,
                           std::vector<Edge>* out);
// Creation-order indexes in an order in which no node comes before its dependencies; empty if there is a cycle.
std::vector<size_t> topological_order(const Graph& graph);
// Removes every user object that `count` references drop to nothing.
void release_user_object(UserObject& object, uint64_t count);

// From what a program passed to what a node keeps. `context`: where the node belongs; null: the current one.
CUresult kernel_node_from(const CUDA_KERNEL_NODE_PARAMS_v2& params, Call& call, KernelNode* out);
CUresult copy_node_from(const CUDA_MEMCPY3D& params, CUcontext context, Call& call, CopyNode* out);
CUresult memset_node_from(const CUDA_MEMSET_NODE_PARAMS_v2& params, Call& call, MemsetNode* out);
CUresult memory_ops_node_from(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, Call& call, MemoryOpsNode* out);
CUresult event_node_from(CUevent event, bool record, EventNode* out);
CUresult alloc_node_from(CUDA_MEM_ALLOC_NODE_PARAMS_v2& params,
                         AllocNode* out);  // also returns the address in `params`
CUresult free_node_from(const Graph& graph, CUdeviceptr address, FreeNode* out);
// Any kind. `graph`: where the node will be.
CUresult payload_from(CUgraphNodeParams& params, const Graph& graph, Call& call, Payload* out);
// Copies argument values into `node` by the kernel's layout.
CUresult keep_arguments(KernelNode& node, void** params, void** extra);
// What an attribute does to the launch. False: not an attribute of kernel nodes.
bool apply_attribute(KernelNode& node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

// --- Executable graphs
// ------------------------------------------------------------------------------------------------

struct ExecNode {
  uint64_t origin = 0;  // the handle, as a number, of the node in the graph that was instantiated
  uint64_t id = 0;      // its own: instantiation clones nodes
  Payload payload;
  bool enabled = true;
  std::vector<size_t> dependencies;  // indexes into ExecBody::nodes
};

struct ExecBody {
  std::vector<ExecNode> nodes;  // in creation order
  std::vector<size_t> order;    // topological
  size_t node_count = 0;        // with those of child graphs
  bool needs_host =
      false;  // host functions, waits for values or events, kernels with work: part of it runs on the worker
  bool has_memory = false;
};

struct GraphExec : Object {
  static constexpr uint64_t kTag = object_tag("sgGREXEC");
  using Handle = CUgraphExec;
  uint32_t id = next_graph_id();
  uint64_t flags = 0;
  std::shared_ptr<const ExecBody> body;
  std::map<UserObject*, uint64_t> user_objects;
};

std::shared_ptr<ExecBody> make_body(const Graph& graph);  // null: cycle
Graph* graph_from_body(const ExecBody& body);             // a new graph like the one it came from; null: out of handles
// Replaces one node (found by its origin, in child bodies too) by a changed copy. False: there is none.
bool change_node(GraphExec& exec, uint64_t origin, const std::function<CUresult(ExecNode&)>& change, CUresult* result);
const ExecNode* find_node(const ExecBody& body, uint64_t origin);
// Whether a node's parameters may become `to`.
CUgraphExecUpdateResult check_update(const Payload& from, const Payload& to);
// What cuGraphExecUpdate makes of `before`; null and `failure`: the graph differs too much.
struct UpdateFailure {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  GraphNode* node = nullptr;
  GraphNode* from = nullptr;
};
std::shared_ptr<ExecBody> updated_body(const ExecBody& before, const Graph& graph, UpdateFailure* failure);

CUresult launch_graph(Call& call, GraphExec& exec, std::shared_ptr<const ExecBody> body, Stream& stream);

// Memory of graphs (under GraphLock, but for the last two, which take it).
CUresult make_graph_memory(Device& device, size_t bytes, std::shared_ptr<GraphMemory>* out);
// What a launch does to it, in the order of the nodes.
CUresult replay_memory(Call& call, const ExecBody& body, uint64_t exec_flags);
// cuMemFree and cuMemFreeAsync of memory that a graph's launch allocated.
CUresult free_graph_memory(Call& call, CUdeviceptr address);

}  // namespace simgpu
