#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/majors.h"
#include "simgpu/runtime/life/registry.h"

// Graph nodes of each kind: add, get, set, set in an executable graph. Copies: graph_copy_node.cpp.
namespace simgpu::runtime {
namespace {

template <typename Params, typename DriverParams>
CUresult kernel_params(const Params& in, DriverParams* out) {
  *out = {};
  out->gridDimX = in.gridDim.x;
  out->gridDimY = in.gridDim.y;
  out->gridDimZ = in.gridDim.z;
  out->blockDimX = in.blockDim.x;
  out->blockDimY = in.blockDim.y;
  out->blockDimZ = in.blockDim.z;
  out->sharedMemBytes = in.sharedMemBytes;
  out->kernelParams = in.kernelParams;
  out->extra = in.extra;
  return kernel_of(in.func, &out->kern);
}

// A function handle stays one: only kernels that the runtime resolved lead back to their host symbol.
cudaKernelNodeParams runtime_params(const CUDA_KERNEL_NODE_PARAMS& in) {
  cudaKernelNodeParams out{};
  out.func = in.kern != nullptr ? symbol_of(in.kern) : static_cast<void*>(in.func);
  out.gridDim = {in.gridDimX, in.gridDimY, in.gridDimZ};
  out.blockDim = {in.blockDimX, in.blockDimY, in.blockDimZ};
  out.sharedMemBytes = in.sharedMemBytes;
  out.kernelParams = in.kernelParams;
  out.extra = in.extra;
  return out;
}

template <typename Params, typename DriverParams>
void memset_params(const Params& in, DriverParams* out) {
  *out = {};
  out->dst = device_pointer(in.dst);
  out->pitch = in.pitch;
  out->value = in.value;
  out->elementSize = in.elementSize;
  out->width = in.width;
  out->height = in.height;
}

cudaMemsetParams runtime_params(const CUDA_MEMSET_NODE_PARAMS& in) {
  cudaMemsetParams out{};
  out.dst = reinterpret_cast<void*>(in.dst);
  out.pitch = in.pitch;
  out.value = in.value;
  out.elementSize = in.elementSize;
  out.width = in.width;
  out.height = in.height;
  return out;
}

static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
static_assert(sizeof(cudaKernelNodeAttrValue) == sizeof(CUkernelNodeAttrValue));
static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

// The name is that of the exported function, as for `run`.
template <typename Call>
cudaError_t with_kernel_params(const cudaKernelNodeParams* params, Call&& call,
                               const char* name = __builtin_FUNCTION()) {
  return run(
      [&] {
        CUDA_KERNEL_NODE_PARAMS out{};
        const CUresult result = params != nullptr ? kernel_params(*params, &out) : CUDA_ERROR_INVALID_VALUE;
        return result == CUDA_SUCCESS ? call(out) : result;
      },
      name);
}

// The generic parameters: kinds whose layout is the same in both go over as they are.
CUresult node_params(const cudaGraphNodeParams& in, CUgraphNodeParams* out) {
  switch (in.type) {
    case cudaGraphNodeTypeKernel:
      *out = {};
      out->type = CU_GRAPH_NODE_TYPE_KERNEL;
      return kernel_params(in.kernel, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
      *out = {};
      out->type = CU_GRAPH_NODE_TYPE_MEMCPY;
      out->memcpy.copyCtx = current_context();
      return copy_3d(in.memcpy.copyParams, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      *out = {};
      out->type = CU_GRAPH_NODE_TYPE_MEMSET;
      memset_params(in.memset, &out->memset);
      out->memset.ctx = current_context();
      return CUDA_SUCCESS;
    case cudaGraphNodeTypeConditional:
      *out = {};
      out->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
      out->conditional.handle = in.conditional.handle;
      out->conditional.type = static_cast<CUgraphConditionalNodeType>(in.conditional.type);
      out->conditional.size = in.conditional.size;
      out->conditional.ctx = current_context();
      return CUDA_SUCCESS;
    default:
      *out = reinterpret_cast<const CUgraphNodeParams&>(in);
      return CUDA_SUCCESS;
  }
}

}  // namespace
}  // namespace simgpu::runtime

using namespace simgpu::runtime;
using Node = cudaGraphNode_t;

extern "C" cudaError_t GT_NAME(cudaGraphAddNode, cudaGraphAddNode_v2)(Node* node, cudaGraph_t graph,
                                                                      const Node* dependencies,
                                                                      const cudaGraphEdgeData* edges, size_t count,
                                                                      cudaGraphNodeParams* params) {
  return run([&] {
    CUgraphNodeParams out{};
    CUresult result = params != nullptr ? node_params(*params, &out) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
      result = driver.cuGraphAddNode(node, graph, dependencies, reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                     &out);
    }
    if (result == CUDA_SUCCESS && params->type == cudaGraphNodeTypeMemAlloc) {
      params->alloc.dptr = reinterpret_cast<void*>(out.alloc.dptr);
    }
    if (result == CUDA_SUCCESS && params->type == cudaGraphNodeTypeConditional) {
      params->conditional.phGraph_out = out.conditional.phGraph_out;
    }
    return result;
  });
}

extern "C" cudaError_t cudaGraphNodeSetParams(Node node, cudaGraphNodeParams* params) {
  return run([&] {
    CUgraphNodeParams out{};
    const CUresult result = params != nullptr ? node_params(*params, &out) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuGraphNodeSetParams(node, &out) : result;
  });
}

extern "C" cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, Node node, cudaGraphNodeParams* params) {
  return run([&] {
    CUgraphNodeParams out{};
    const CUresult result = params != nullptr ? node_params(*params, &out) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? driver.cuGraphExecNodeSetParams(exec, node, &out) : result;
  });
}

extern "C" cudaError_t cudaGraphAddKernelNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                              const cudaKernelNodeParams* params) {
  return with_kernel_params(params, [&](const CUDA_KERNEL_NODE_PARAMS& out) {
    return driver.cuGraphAddKernelNode(node, graph, dependencies, count, &out);
  });
}

extern "C" cudaError_t cudaGraphKernelNodeGetParams(Node node, cudaKernelNodeParams* params) {
  return run([&] {
    CUDA_KERNEL_NODE_PARAMS found{};
    const CUresult result = driver.cuGraphKernelNodeGetParams(node, &found);
    if (result == CUDA_SUCCESS) {
      *params = runtime_params(found);
    }
    return result;
  });
}

extern "C" cudaError_t cudaGraphKernelNodeSetParams(Node node, const cudaKernelNodeParams* params) {
  return with_kernel_params(
      params, [&](const CUDA_KERNEL_NODE_PARAMS& out) { return driver.cuGraphKernelNodeSetParams(node, &out); });
}

extern "C" cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, Node node,
                                                        const cudaKernelNodeParams* params) {
  return with_kernel_params(params, [&](const CUDA_KERNEL_NODE_PARAMS& out) {
    return driver.cuGraphExecKernelNodeSetParams(exec, node, &out);
  });
}

extern "C" cudaError_t cudaGraphKernelNodeCopyAttributes(Node target, Node source) {
  return run([&] { return driver.cuGraphKernelNodeCopyAttributes(target, source); });
}

extern "C" cudaError_t cudaGraphKernelNodeGetAttribute(Node node, cudaKernelNodeAttrID attribute,
                                                       cudaKernelNodeAttrValue* value) {
  return run([&] {
    return driver.cuGraphKernelNodeGetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                                reinterpret_cast<CUkernelNodeAttrValue*>(value));
  });
}

extern "C" cudaError_t cudaGraphKernelNodeSetAttribute(Node node, cudaKernelNodeAttrID attribute,
                                                       const cudaKernelNodeAttrValue* value) {
  return run([&] {
    return driver.cuGraphKernelNodeSetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                                reinterpret_cast<const CUkernelNodeAttrValue*>(value));
  });
}

extern "C" cudaError_t cudaGraphAddMemsetNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                              const cudaMemsetParams* params) {
  return run([&] {
    CUDA_MEMSET_NODE_PARAMS out{};
    memset_params(*params, &out);
    return driver.cuGraphAddMemsetNode(node, graph, dependencies, count, &out, current_context());
  });
}

extern "C" cudaError_t cudaGraphMemsetNodeGetParams(Node node, cudaMemsetParams* params) {
  return run([&] {
    CUDA_MEMSET_NODE_PARAMS found{};
    const CUresult result = driver.cuGraphMemsetNodeGetParams(node, &found);
    if (result == CUDA_SUCCESS) {
      *params = runtime_params(found);
    }
    return result;
  });
}

extern "C" cudaError_t cudaGraphMemsetNodeSetParams(Node node, const cudaMemsetParams* params) {
  return run([&] {
    CUDA_MEMSET_NODE_PARAMS out{};
    memset_params(*params, &out);
    return driver.cuGraphMemsetNodeSetParams(node, &out);
  });
}

extern "C" cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, Node node,
                                                        const cudaMemsetParams* params) {
  return run([&] {
    CUDA_MEMSET_NODE_PARAMS out{};
    memset_params(*params, &out);
    return driver.cuGraphExecMemsetNodeSetParams(exec, node, &out, current_context());
  });
}

extern "C" cudaError_t cudaGraphAddHostNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                            const cudaHostNodeParams* params) {
  return run([&] {
    return driver.cuGraphAddHostNode(node, graph, dependencies, count,
                                     reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params));
  });
}

extern "C" cudaError_t cudaGraphHostNodeGetParams(Node node, cudaHostNodeParams* params) {
  return run([&] { return driver.cuGraphHostNodeGetParams(node, reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(params)); });
}

extern "C" cudaError_t cudaGraphHostNodeSetParams(Node node, const cudaHostNodeParams* params) {
  return run(
      [&] { return driver.cuGraphHostNodeSetParams(node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)); });
}

extern "C" cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, Node node,
                                                      const cudaHostNodeParams* params) {
  return run([&] {
    return driver.cuGraphExecHostNodeSetParams(exec, node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params));
  });
}

extern "C" cudaError_t cudaGraphAddChildGraphNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                                  cudaGraph_t child) {
  return run([&] { return driver.cuGraphAddChildGraphNode(node, graph, dependencies, count, child); });
}

extern "C" cudaError_t cudaGraphChildGraphNodeGetGraph(Node node, cudaGraph_t* graph) {
  return run([&] { return driver.cuGraphChildGraphNodeGetGraph(node, graph); });
}

extern "C" cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, Node node, cudaGraph_t child) {
  return run([&] { return driver.cuGraphExecChildGraphNodeSetParams(exec, node, child); });
}

extern "C" cudaError_t cudaGraphAddEmptyNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count) {
  return run([&] { return driver.cuGraphAddEmptyNode(node, graph, dependencies, count); });
}

extern "C" cudaError_t cudaGraphAddEventRecordNode(Node* node, cudaGraph_t graph, const Node* dependencies,
                                                   size_t count, cudaEvent_t event) {
  return run([&] { return driver.cuGraphAddEventRecordNode(node, graph, dependencies, count, event); });
}

extern "C" cudaError_t cudaGraphEventRecordNodeGetEvent(Node node, cudaEvent_t* event) {
  return run([&] { return driver.cuGraphEventRecordNodeGetEvent(node, event); });
}

extern "C" cudaError_t cudaGraphEventRecordNodeSetEvent(Node node, cudaEvent_t event) {
  return run([&] { return driver.cuGraphEventRecordNodeSetEvent(node, event); });
}

extern "C" cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, Node node, cudaEvent_t event) {
  return run([&] { return driver.cuGraphExecEventRecordNodeSetEvent(exec, node, event); });
}

extern "C" cudaError_t cudaGraphAddEventWaitNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                                 cudaEvent_t event) {
  return run([&] { return driver.cuGraphAddEventWaitNode(node, graph, dependencies, count, event); });
}

extern "C" cudaError_t cudaGraphEventWaitNodeGetEvent(Node node, cudaEvent_t* event) {
  return run([&] { return driver.cuGraphEventWaitNodeGetEvent(node, event); });
}

extern "C" cudaError_t cudaGraphEventWaitNodeSetEvent(Node node, cudaEvent_t event) {
  return run([&] { return driver.cuGraphEventWaitNodeSetEvent(node, event); });
}

extern "C" cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, Node node, cudaEvent_t event) {
  return run([&] { return driver.cuGraphExecEventWaitNodeSetEvent(exec, node, event); });
}

extern "C" cudaError_t cudaGraphAddMemAllocNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                                cudaMemAllocNodeParams* params) {
  return run([&] {
    return driver.cuGraphAddMemAllocNode(node, graph, dependencies, count,
                                         reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params));
  });
}

extern "C" cudaError_t cudaGraphMemAllocNodeGetParams(Node node, cudaMemAllocNodeParams* params) {
  return run(
      [&] { return driver.cuGraphMemAllocNodeGetParams(node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params)); });
}

extern "C" cudaError_t cudaGraphAddMemFreeNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                               void* pointer) {
  return run([&] { return driver.cuGraphAddMemFreeNode(node, graph, dependencies, count, device_pointer(pointer)); });
}

extern "C" cudaError_t cudaGraphMemFreeNodeGetParams(Node node, void* pointer_out) {
  return run([&] { return driver.cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(pointer_out)); });
}
