// Operations on a capturing stream, kept as graph nodes.
#include "simgpu/driver/graph/capture_state.h"

namespace simgpu {

CUresult append(Call&, Stream& stream, Payload payload, bool programmatic) {
  GraphLock lock;
  Capture* capture = nullptr;
  if (const CUresult result = capture_of(stream, &capture); result != CUDA_SUCCESS) return result;
  std::vector<Edge> after = capture->streams[&stream];
  for (Edge& edge : after) {
    if (!programmatic || !std::holds_alternative<KernelNode>(edge.node->payload)) continue;
    edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  GraphNode* node = add_node(*capture->graph, std::move(payload), after);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  capture->streams[&stream] = {Edge{node, {}}};
  return CUDA_SUCCESS;
}

CUresult capture_kernel(Call& call, Stream& stream, const KernelLaunch& launch, void** params, void** extra,
                        const CUlaunchConfig* config) {
  KernelNode node;
  node.launch = launch;
  node.launch.programmatic = false;  // in a graph that is the edge's matter
  node.context = launch.function->context;
  if (launch.function->kernel != nullptr) {
    node.kernel = handle_of(launch.function->kernel);
  } else {
    node.function = handle_of(launch.function);
  }
  if (const CUresult result = keep_arguments(node, params, extra); result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; config != nullptr && i < config->numAttrs; ++i) {
    apply_attribute(node, config->attrs[i].id, config->attrs[i].value);
  }
  GraphLock lock;
  const CUresult result = append(call, stream, std::move(node), launch.programmatic);
  if (result != CUDA_SUCCESS) return result;
  const Capture& capture = *stream.capture.load(std::memory_order_acquire);
  truth_node(call.stamp().get(), launch, stream, capture.streams.at(&stream).front().node);
  return CUDA_SUCCESS;
}

CUresult capture_copy(Call& call, Stream& stream, const Copy& copy, const CUDA_MEMCPY3D& description) {
  CopyNode node;
  node.description = description;
  node.context = stream.context;
  node.copy = copy;
  node.copy.async = true;
  return append(call, stream, node);
}

CUresult capture_memset(Call& call, Stream& stream, const Memset& memset) {
  MemsetNode node;
  node.memset = memset;
  node.params = {memset.dst,
                 memset.pitch,
                 memset.value,
                 memset.element_bytes,
                 memset.width,
                 memset.height,
                 handle_of(stream.context)};
  return append(call, stream, node);
}

CUresult capture_host_function(Call& call, Stream& stream, CUhostFn function, void* data) {
  return append(call, stream, HostNode{function, data});
}

CUresult capture_memory_ops(Call& call, Stream& stream, unsigned count, const CUstreamBatchMemOpParams* operations) {
  MemoryOpsNode node;
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{handle_of(stream.context), count,
                                       const_cast<CUstreamBatchMemOpParams*>(operations), 0};
  const CUresult result = memory_ops_node_from(params, call, &node);
  return result == CUDA_SUCCESS ? append(call, stream, std::move(node)) : result;
}

CUresult capture_graph_launch(Call& call, Stream& stream, const ExecBody& body) {
  GraphLock lock;
  if (body.has_memory) return CUDA_ERROR_NOT_SUPPORTED;
  ChildNode node;
  node.graph = graph_from_body(body);
  if (node.graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = append(call, stream, node);
  if (result != CUDA_SUCCESS) destroy_graph(*node.graph);
  return result;
}

CUresult capture_alloc(Call& call, Stream& stream, Device& device, size_t bytes, CUdeviceptr* out) {
  GraphLock lock;
  AllocNode node;
  node.params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  node.params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  node.params.poolProps.location.id = device.ordinal;
  node.params.bytesize = bytes;
  if (const CUresult result = alloc_node_from(node.params, &node); result != CUDA_SUCCESS) return result;
  const CUdeviceptr address = node.memory->address;
  const CUresult result = append(call, stream, std::move(node));
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

CUresult capture_free(Call& call, Stream& stream, CUdeviceptr address) {
  GraphLock lock;
  Capture* capture = nullptr;
  if (const CUresult result = capture_of(stream, &capture); result != CUDA_SUCCESS) return result;
  FreeNode node;
  const CUresult result = free_node_from(*capture->graph, address, &node);
  return result == CUDA_SUCCESS ? append(call, stream, node) : result;
}

}  // namespace simgpu
