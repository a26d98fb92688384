// Node parameters: from what a program passes to what a node keeps, judged on the way.
#include <cstring>

#include "simgpu/driver/graph/graph.h"
#include "simgpu/driver/life/knobs.h"

namespace simgpu {

namespace {

// A context a node names, or the current one.
Context* context_from(CUcontext handle, Call& call) {
  if (handle == nullptr) return call.context();
  Context* context = live<Context>(handle);
  return context != nullptr && context->active.load(std::memory_order_acquire) ? context : nullptr;
}

struct ExtraBuffer {
  const char* data = nullptr;
  size_t bytes = 0;
};

CUresult read_extra(void** extra, ExtraBuffer* out) {
  constexpr int kMaxEntries = 16;
  for (int i = 0; i < kMaxEntries && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      out->data = static_cast<const char*>(extra[i + 1]);
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      out->bytes = *static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult keep_arguments(KernelNode& node, void** params, void** extra) {
  if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const gputrace::ImageKernel& code = *node.launch.function->code;
  ExtraBuffer buffer;
  if (extra != nullptr) {
    if (const CUresult result = read_extra(extra, &buffer); result != CUDA_SUCCESS) return result;
    if (buffer.data == nullptr || buffer.bytes < code.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  }
  if (params == nullptr && extra == nullptr && !code.parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  auto values = std::make_shared<std::vector<char>>(code.parameter_bytes);
  auto arguments = std::make_shared<std::vector<void*>>();
  for (size_t i = 0; i < code.parameters.size(); ++i) {
    const gputrace::CodeParameter& parameter = code.parameters[i];
    char* value = values->data() + parameter.offset;
    const void* source = params != nullptr ? params[i] : buffer.data + parameter.offset;
    if (source == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, source, parameter.size);
    arguments->push_back(value);
  }
  node.values = std::move(values);
  node.arguments = std::move(arguments);
  return CUDA_SUCCESS;
}

CUresult kernel_node_from(const CUDA_KERNEL_NODE_PARAMS_v2& params, Call& call, KernelNode* out) {
  if (params.func == nullptr && params.kern == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = context_from(params.ctx, call);
  const CUfunction handle = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  // A CUfunction knows its context; a CUkernel is brought into the one that was named.
  const Function* plain = live<Function>(handle);
  if (plain == nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Function* function = function_from_handle(handle, context);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  KernelNode node = *out;  // attributes of the node stay when its parameters change
  node.function = params.func;
  node.kernel = params.func != nullptr ? nullptr : params.kern;
  node.context = function->context;
  node.launch.function = function;
  node.launch.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  node.launch.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  node.launch.dynamic_shared = params.sharedMemBytes;
  if (node.attributes.count(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) == 0) {
    const auto& fixed = function->code->required_cluster;
    node.launch.cluster = fixed[0] != 0 ? Dim3{fixed[0], fixed[1], fixed[2]} : Dim3{};
  }
  if (const CUresult result = check_launch(node.launch); result != CUDA_SUCCESS) return result;
  if (const CUresult result = keep_arguments(node, params.kernelParams, params.extra); result != CUDA_SUCCESS)
    return result;
  *out = std::move(node);
  return CUDA_SUCCESS;
}

bool apply_attribute(KernelNode& node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
      return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      node.launch.cooperative = value.cooperative != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      node.launch.priority = value.priority;
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      node.launch.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      break;
    default:
      return false;
  }
  node.attributes[id] = value;
  return true;
}

CUresult copy_node_from(const CUDA_MEMCPY3D& params, CUcontext handle, Call& call, CopyNode* out) {
  Context* context = context_from(handle, call);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CopyNode node;
  node.description = params;
  node.context = context;
  if (const CUresult result = describe_copy(params, context, &node.copy); result != CUDA_SUCCESS) return result;
  node.copy.async = true;
  *out = node;
  return CUDA_SUCCESS;
}

CUresult memset_node_from(const CUDA_MEMSET_NODE_PARAMS_v2& params, Call& call, MemsetNode* out) {
  Context* context = context_from(params.ctx, call);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (params.elementSize != 1 && params.elementSize != 2 && params.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (params.width == 0 || params.height == 0) return CUDA_ERROR_INVALID_VALUE;
  MemsetNode node;
  node.params = params;
  node.params.ctx = handle_of(context);
  Memset& memset = node.memset;
  memset.dst = params.dst;
  memset.pitch = params.pitch;
  memset.value = params.value;
  memset.element_bytes = params.elementSize;
  memset.width = params.width;
  memset.height = params.height;
  if (const CUresult result = check_memset(memset); result != CUDA_SUCCESS) return result;
  *out = node;
  return CUDA_SUCCESS;
}

CUresult memory_ops_node_from(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, Call& call, MemoryOpsNode* out) {
  constexpr unsigned kMaxOperations = 256;
  if (params.flags != 0 || params.count > kMaxOperations) return CUDA_ERROR_INVALID_VALUE;
  if (params.count != 0 && params.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = context_from(params.ctx, call);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  for (unsigned i = 0; i < params.count; ++i) {
    const CUstreamBatchMemOpParams& operation = params.paramArray[i];
    switch (operation.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        if (!find_range(operation.waitValue.address, 4)) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (!find_range(operation.waitValue.address, 8)) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  out->context = context;
  out->flags = params.flags;
  out->operations.assign(params.paramArray, params.paramArray + params.count);
  return CUDA_SUCCESS;
}

CUresult event_node_from(CUevent handle, bool record, EventNode* out) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event* event = live<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = {event, record};
  return CUDA_SUCCESS;
}

namespace {

CUresult child_from(const CUDA_CHILD_GRAPH_NODE_PARAMS& params, const Graph& graph, ChildNode* out) {
  Graph* child = live<Graph>(params.graph);
  if (child == nullptr || child == &graph) return CUDA_ERROR_INVALID_VALUE;
  const bool move = params.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  if (!move && params.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_INVALID_VALUE;
  if (move) {
    if (child->owner != nullptr) return CUDA_ERROR_INVALID_VALUE;
    out->graph = child;
    return CUDA_SUCCESS;
  }
  if (holds_memory_nodes(*child)) return CUDA_ERROR_NOT_SUPPORTED;
  out->graph = clone_graph(*child, nullptr);
  return out->graph != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

template <class Node, class Make>
CUresult fill(Payload* out, Make&& make) {
  Node node;
  if (Node* before = std::get_if<Node>(out)) node = *before;
  const CUresult result = make(&node);
  if (result == CUDA_SUCCESS) *out = std::move(node);
  return result;
}

}  // namespace

CUresult payload_from(CUgraphNodeParams& params, const Graph& graph, Call& call, Payload* out) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel;
      static_assert(sizeof kernel == sizeof params.kernel);
      std::memcpy(&kernel, &params.kernel, sizeof kernel);
      return fill<KernelNode>(out, [&](KernelNode* node) { return kernel_node_from(kernel, call, node); });
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return fill<CopyNode>(out, [&](CopyNode* node) {
        return copy_node_from(params.memcpy.copyParams, params.memcpy.copyCtx, call, node);
      });
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill<MemsetNode>(out, [&](MemsetNode* node) { return memset_node_from(params.memset, call, node); });
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *out = HostNode{params.host.fn, params.host.userData};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      ChildNode child;
      if (const CUresult result = child_from(params.graph, graph, &child); result != CUDA_SUCCESS) return result;
      params.graph.graph = handle_of(child.graph);
      *out = child;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *out = EmptyNode{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return fill<EventNode>(out,
                             [&](EventNode* node) { return event_node_from(params.eventWait.event, false, node); });
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return fill<EventNode>(out,
                             [&](EventNode* node) { return event_node_from(params.eventRecord.event, true, node); });
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return fill<AllocNode>(out, [&](AllocNode* node) { return alloc_node_from(params.alloc, node); });
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return fill<FreeNode>(out, [&](FreeNode* node) { return free_node_from(graph, params.free.dptr, node); });
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 operations{params.memOp.ctx, params.memOp.count, params.memOp.paramArray,
                                                  params.memOp.flags};
      return fill<MemoryOpsNode>(out,
                                 [&](MemoryOpsNode* node) { return memory_ops_node_from(operations, call, node); });
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace simgpu
