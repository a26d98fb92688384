#include "interpose/record/graphs.h"

#include "base/mapped_memory.h"
#include "interpose/definition/own_work.h"
#include "interpose/hot/session.h"
#include "interpose/lookup/driver_query.h"
#include "interpose/record/make_record.h"

namespace gputrace {
namespace {

constexpr u64 kMaxNodes = 1u << 20;  // of one graph; more are not read
constexpr int kMaxNesting = 8;       // child graphs in child graphs

// Handles of one graph's nodes, in memory of its own.
class NodeList {
 public:
  explicit NodeList(CUgraph graph) {
    const DriverQuery& query = driver_query();
    size_t count = 0;
    if (!query.cuGraphGetNodes || query.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count > kMaxNodes)
      return;
    read_ = count == 0;
    if (!count) return;
    mapped_ = align_up(count * sizeof(CUgraphNode), 4096);
    nodes_ = map_memory<CUgraphNode>(mapped_);
    if (!nodes_) return;
    read_ = query.cuGraphGetNodes(graph, nodes_, &count) == CUDA_SUCCESS;
    count_ = read_ ? count : 0;
  }
  ~NodeList() {
    if (nodes_) unmap_memory(nodes_, mapped_);
  }
  NodeList(const NodeList&) = delete;
  NodeList& operator=(const NodeList&) = delete;
  bool read() const { return read_; }
  const CUgraphNode* begin() const { return nodes_; }
  const CUgraphNode* end() const { return nodes_ + count_; }

 private:
  CUgraphNode* nodes_ = nullptr;
  u64 count_ = 0;
  u64 mapped_ = 0;
  bool read_ = false;
};

struct Counts {
  u32 nodes = 0;
  u32 kernels = 0;
  bool complete = true;
};

CUgraphNodeType type_of(CUgraphNode node) {
  const DriverQuery& query = driver_query();
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (query.cuGraphNodeGetType) query.cuGraphNodeGetType(node, &type);
  return type;
}

CUgraph child_of(CUgraphNode node) {
  const DriverQuery& query = driver_query();
  CUgraph child = nullptr;
  if (!query.cuGraphChildGraphNodeGetGraph || query.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS)
    return nullptr;
  return child;
}

template <typename Params>
void fill_kernel(GraphNode& record, const Params& params) {
  record.function = handle(params.func);
  record.grid_x = params.gridDimX;
  record.grid_y = params.gridDimY;
  record.grid_z = params.gridDimZ;
  record.block_x = params.blockDimX;
  record.block_y = params.blockDimY;
  record.block_z = params.blockDimZ;
  record.dynamic_shared_bytes = params.sharedMemBytes;
}
// Since 12.0 a node may hold a CUkernel in a field of its own.
void fill_kernel_v2(GraphNode& record, const CUDA_KERNEL_NODE_PARAMS& params) {
  fill_kernel(record, params);
  if (!record.function) record.function = handle(params.kern);
}
void fill_copy(GraphNode& record, const CUDA_MEMCPY3D& params) {
  record.bytes = u64{params.WidthInBytes} * params.Height * params.Depth;
  record.copy_kind = static_cast<u8>(kind_of(params.srcMemoryType, params.dstMemoryType));
}
void fill_memset(GraphNode& record, const CUDA_MEMSET_NODE_PARAMS& params) {
  record.bytes = u64{params.elementSize} * params.width * params.height;
}

void fill_memory(GraphNode& record, const CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  record.bytes = params.bytesize;
  record.address = params.dptr;
  record.device = params.poolProps.location.id;
}

void read_node(GraphNode& record, CUgraphNode node, CUgraphNodeType type) {
  const DriverQuery& query = driver_query();
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS params{};
    CUDA_KERNEL_NODE_PARAMS_v1 old{};
    if (query.cuGraphKernelNodeGetParams_v2 && query.cuGraphKernelNodeGetParams_v2(node, &params) == CUDA_SUCCESS)
      fill_kernel_v2(record, params);
    else if (query.cuGraphKernelNodeGetParams && query.cuGraphKernelNodeGetParams(node, &old) == CUDA_SUCCESS)
      fill_kernel(record, old);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    CUDA_MEMCPY3D params{};
    if (query.cuGraphMemcpyNodeGetParams && query.cuGraphMemcpyNodeGetParams(node, &params) == CUDA_SUCCESS)
      fill_copy(record, params);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS params{};
    if (query.cuGraphMemsetNodeGetParams && query.cuGraphMemsetNodeGetParams(node, &params) == CUDA_SUCCESS)
      fill_memset(record, params);
  } else if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    if (query.cuGraphMemAllocNodeGetParams && query.cuGraphMemAllocNodeGetParams(node, &params) == CUDA_SUCCESS)
      fill_memory(record, params);
  } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    CUdeviceptr address = 0;
    if (query.cuGraphMemFreeNodeGetParams && query.cuGraphMemFreeNodeGetParams(node, &address) == CUDA_SUCCESS)
      record.address = address;
  }
}

// Calls visit(node, type, nesting) for every node of a graph and of its child graphs.
template <typename Visit>
bool walk(CUgraph graph, int nesting, Visit&& visit) {
  const NodeList nodes(graph);
  if (!nodes.read()) return false;
  bool complete = true;
  for (CUgraphNode node : nodes) {
    const CUgraphNodeType type = type_of(node);
    visit(node, type, nesting);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph child = child_of(node);
    complete &= child && nesting < kMaxNesting && walk(child, nesting + 1, visit);
  }
  return complete;
}

void record_graph(const FinishedCall& call, CUgraph graph, CUgraphExec exec, u32 flags) {
  ErrnoGuard guard;
  GraphInstantiate record{};
  record.graph = handle(graph);
  record.exec = handle(exec);
  record.flags = flags;
  if (!call.ok()) {
    emit(call, record);
    return;
  }
  const OwnWorkScope work(call, OwnWorkKind::Graph);
  Counts counts;
  counts.complete = walk(graph, 0, [&](CUgraphNode, CUgraphNodeType type, int) {
    ++counts.nodes;
    counts.kernels += type == CU_GRAPH_NODE_TYPE_KERNEL;
  });
  if (!counts.complete) record.flags |= kGraphUnreadable;
  record.nodes = counts.complete ? counts.nodes : 0;
  record.kernel_nodes = counts.complete ? counts.kernels : 0;
  emit(call, record);
  exec_created(exec);
  // The same header as the call's own record: the reader counts records of one call that follow each other once.
  walk(graph, 0, [&](CUgraphNode node, CUgraphNodeType type, int nesting) {
    GraphNode out{};
    out.exec = handle(exec);
    out.node = handle(node);
    out.kind = static_cast<u32>(type);
    out.flags = nesting ? kNodeInChild : 0u;
    read_node(out, node, type);
    function_of_node(call, out.function);
    emit(call, out);
    exec_node_created(exec, node, type);
    if (out.function) function_launched(call, out.function);
  });
}

GraphNode changed_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type) {
  GraphNode record{};
  record.exec = handle(exec);
  record.node = handle(node);
  record.kind = static_cast<u32>(type);
  record.flags = kNodeSet;
  return record;
}

// The node that the stream's next one comes after: the newest one, where there is one alone.
struct Captured {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  cuuint64_t capture = 0;
};
Captured newest_of(CUstream stream, bool per_thread) {
  ErrnoGuard guard;
  const DriverQuery& query = driver_query();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Captured found;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;  // who does not ask for them is refused where they say something
  size_t count = 0;
  const auto ask = per_thread ? query.cuStreamGetCaptureInfo_v3_ptsz : query.cuStreamGetCaptureInfo_v3;
  const auto old = per_thread ? query.cuStreamGetCaptureInfo_v2_ptsz : query.cuStreamGetCaptureInfo_v2;  // before 12.3
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (ask)
    result = ask(stream, &status, &found.capture, &found.graph, &nodes, &edges, &count);
  else if (old)
    result = old(stream, &status, &found.capture, &found.graph, &nodes, &count);
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1 || !nodes) return {};
  found.node = nodes[0];
  return found;
}

}  // namespace

void graph_instantiated(const FinishedCall& call, CUgraph graph, CUgraphExec exec) {
  record_graph(call, graph, exec, 0);
  exec_told();
}
void graph_updated(const FinishedCall& call, CUgraph graph, CUgraphExec exec) {
  record_graph(call, graph, exec, kGraphUpdate);
}

void kernel_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                     const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  GraphNode record = changed_node(exec, node, CU_GRAPH_NODE_TYPE_KERNEL);
  if (call.ok() && params) fill_kernel(record, *params);
  emit(call, record);
  if (record.function) function_launched(call, record.function);
}
void kernel_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                     const CUDA_KERNEL_NODE_PARAMS* params) {
  GraphNode record = changed_node(exec, node, CU_GRAPH_NODE_TYPE_KERNEL);
  if (call.ok() && params) fill_kernel_v2(record, *params);
  emit(call, record);
  if (record.function) function_launched(call, record.function);
}
void copy_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params) {
  GraphNode record = changed_node(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY);
  if (call.ok() && params) fill_copy(record, *params);
  emit(call, record);
}
void memset_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node,
                     const CUDA_MEMSET_NODE_PARAMS* params) {
  GraphNode record = changed_node(exec, node, CU_GRAPH_NODE_TYPE_MEMSET);
  if (call.ok() && params) fill_memset(record, *params);
  emit(call, record);
}
void node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams* params) {
  GraphNode record = changed_node(exec, node, call.ok() && params ? params->type : CU_GRAPH_NODE_TYPE_EMPTY);
  if (call.ok() && params) {
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
      fill_kernel(record, params->kernel);
      if (!record.function) record.function = handle(params->kernel.kern);
    } else if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      fill_copy(record, params->memcpy.copyParams);
    } else if (params->type == CU_GRAPH_NODE_TYPE_MEMSET) {
      record.bytes = u64{params->memset.elementSize} * params->memset.width * params->memset.height;
    }
  }
  emit(call, record);
  if (record.function) function_launched(call, record.function);
}
void other_node_set(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, CUgraphNodeType type) {
  emit(call, changed_node(exec, node, type));
}
void node_enabled(const FinishedCall& call, CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  GraphNode record = changed_node(exec, node, call.ok() ? type_of(node) : CU_GRAPH_NODE_TYPE_EMPTY);
  if (call.ok()) read_node(record, node, static_cast<CUgraphNodeType>(record.kind));
  if (!enabled) record.flags |= kNodeDisabled;
  emit(call, record);
}

void capture_begun(const FinishedCall& call, CUstream stream) {
  if (call.ok()) open_captures.fetch_add(1, std::memory_order_relaxed);
  object_call(call, ObjectKind::Capture, ObjectAct::Begun, u64{0}, handle(stream));
}

void capture_ended(const FinishedCall& call, CUstream stream, CUgraph graph) {
  // A failed end also ends the capture if it was invalid; it does not if the wrong thread asked.
  const bool over = call.ok() || capture_flags(stream, call.per_thread) == 0;
  u32 open = open_captures.load(std::memory_order_relaxed);
  while (over && open && !open_captures.compare_exchange_weak(open, open - 1, std::memory_order_relaxed)) {
  }
  object_call(call, ObjectKind::Capture, ObjectAct::Ended, graph, handle(stream));
}

u32 captured_work(const FinishedCall& call, CUstream stream) {
  const u32 flags = capture_flags(stream, call.per_thread);
  if (!(flags & kLaunchCaptured) || gate.stacks.load(std::memory_order_relaxed) == 0) return flags;
  const Captured newest = newest_of(stream, call.per_thread);
  if (!newest.node) return flags;
  CapturedNode record{};
  record.graph = handle(newest.graph);
  record.node = handle(newest.node);
  record.capture = newest.capture;
  FinishedCall within = call;
  within.set(0, 0);
  within.begin = call.end;
  emit(within, record);
  return flags;
}

}  // namespace gputrace
