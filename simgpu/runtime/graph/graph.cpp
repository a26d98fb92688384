#include "simgpu/runtime/life/convert.h"
#include "simgpu/runtime/life/majors.h"
#include "simgpu/runtime/life/streamed.h"

// Graphs as wholes: making, querying, changing their edges, instantiating, updating, launching. Nodes: graph_node.cpp.
namespace simgpu::runtime {

static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

cudaError_t streamed::cudaGraphInstantiateWithParams(Mode mode, cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     cudaGraphInstantiateParams* params) {
  return run([&] {
    return driver.cuGraphInstantiateWithParams(mode, exec, graph,
                                               reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
  });
}

cudaError_t streamed::cudaGraphLaunch(Mode mode, cudaGraphExec_t exec, cudaStream_t stream) {
  return run([&] { return driver.cuGraphLaunch(mode, exec, stream); });
}

cudaError_t streamed::cudaGraphUpload(Mode mode, cudaGraphExec_t exec, cudaStream_t stream) {
  return run([&] { return driver.cuGraphUpload(mode, exec, stream); });
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return run([&] { return driver.cuGraphCreate(graph, flags); });
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return run([&] { return driver.cuGraphDestroy(graph); });
}

extern "C" cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return run([&] { return driver.cuGraphClone(clone, original); });
}

extern "C" cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return run([&] { return driver.cuGraphNodeFindInClone(node, original, clone); });
}

extern "C" cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return run([&] { return driver.cuGraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type)); });
}

extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return run([&] { return driver.cuGraphGetNodes(graph, nodes, count); });
}

extern "C" cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return run([&] { return driver.cuGraphGetRootNodes(graph, nodes, count); });
}

extern "C" cudaError_t GT_NAME(cudaGraphGetEdges, cudaGraphGetEdges_v2)(cudaGraph_t graph, cudaGraphNode_t* from,
                                                                        cudaGraphNode_t* to, cudaGraphEdgeData* data,
                                                                        size_t* count) {
  return run([&] { return driver.cuGraphGetEdges(graph, from, to, reinterpret_cast<CUgraphEdgeData*>(data), count); });
}

extern "C" cudaError_t GT_NAME(cudaGraphNodeGetDependencies,
                               cudaGraphNodeGetDependencies_v2)(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                                                cudaGraphEdgeData* data, size_t* count) {
  return run([&] {
    return driver.cuGraphNodeGetDependencies(node, dependencies, reinterpret_cast<CUgraphEdgeData*>(data), count);
  });
}

extern "C" cudaError_t GT_NAME(cudaGraphNodeGetDependentNodes,
                               cudaGraphNodeGetDependentNodes_v2)(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                                                  cudaGraphEdgeData* data, size_t* count) {
  return run([&] {
    return driver.cuGraphNodeGetDependentNodes(node, dependents, reinterpret_cast<CUgraphEdgeData*>(data), count);
  });
}

extern "C" cudaError_t GT_NAME(cudaGraphAddDependencies,
                               cudaGraphAddDependencies_v2)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                            const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                                            size_t count) {
  return run([&] {
    return driver.cuGraphAddDependencies(graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(data), count);
  });
}

extern "C" cudaError_t GT_NAME(cudaGraphRemoveDependencies,
                               cudaGraphRemoveDependencies_v2)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                               const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                                               size_t count) {
  return run([&] {
    return driver.cuGraphRemoveDependencies(graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(data), count);
  });
}

extern "C" cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return run([&] { return driver.cuGraphDestroyNode(node); });
}

extern "C" cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  return run([&] { return driver.cuGraphDebugDotPrint(graph, path, flags); });
}

extern "C" cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     unsigned long long flags) {
  return run([&] { return driver.cuGraphInstantiateWithFlags(exec, graph, flags); });
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return as_itself([&] { return cudaGraphInstantiateWithFlags(exec, graph, flags); });
}

extern "C" cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return run([&] { return driver.cuGraphExecGetFlags(exec, reinterpret_cast<cuuint64_t*>(flags)); });
}

extern "C" cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo* info) {
  return run(
      [&] { return driver.cuGraphExecUpdate(exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(info)); });
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return run([&] { return driver.cuGraphExecDestroy(exec); });
}

extern "C" cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return run([&] { return driver.cuGraphNodeSetEnabled(exec, node, enabled); });
}

extern "C" cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return run([&] { return driver.cuGraphNodeGetEnabled(exec, node, enabled); });
}

extern "C" cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                                        unsigned initial, unsigned flags) {
  return run([&] {
    return driver.cuGraphConditionalHandleCreate(reinterpret_cast<CUgraphConditionalHandle*>(handle), graph,
                                                 current_context(), initial, flags);
  });
}

extern "C" cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy,
                                            unsigned count, unsigned flags) {
  return run([&] { return driver.cuUserObjectCreate(object, pointer, destroy, count, flags); });
}

extern "C" cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return run([&] { return driver.cuUserObjectRetain(object, count); });
}

extern "C" cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return run([&] { return driver.cuUserObjectRelease(object, count); });
}

extern "C" cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                                 unsigned flags) {
  return run([&] { return driver.cuGraphRetainUserObject(graph, object, count, flags); });
}

extern "C" cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return run([&] { return driver.cuGraphReleaseUserObject(graph, object, count); });
}
