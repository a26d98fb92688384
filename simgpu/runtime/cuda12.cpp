// What the runtime of CUDA 12 has and that of 13 has not: calls without edge data, by number of a device, with an index of the operation that
// failed, and those that were deprecated long ago. Built into libcudart.so.12 alone.
#include "simgpu/runtime/life/streamed.h"

#undef cudaStreamGetCaptureInfo  // the header's macro for its second version

namespace simgpu::runtime {
namespace {

CUmemLocation location_of(int device) {
  CUmemLocation location{};
  location.type = device == cudaCpuDeviceId ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

}  // namespace

cudaError_t streamed::cudaMemPrefetchAsync(Mode mode, const void* pointer, size_t count, int device,
                                           cudaStream_t stream) {
  return run(
      [&] { return driver.cuMemPrefetchAsync(mode, device_pointer(pointer), count, location_of(device), 0u, stream); });
}

cudaError_t streamed::cudaStreamGetCaptureInfo_v2(Mode mode, cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                  unsigned long long* id, cudaGraph_t* graph,
                                                  const cudaGraphNode_t** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo_v3(mode, stream, status, id, graph, dependencies, nullptr, count);
}

cudaError_t streamed::cudaStreamUpdateCaptureDependencies(Mode mode, cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                          size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(mode, stream, dependencies, nullptr, count, flags);
}

cudaError_t streamed::cudaMemcpyBatchAsync(Mode mode, void** targets, void** sources, size_t* sizes, size_t count,
                                           cudaMemcpyAttributes* attributes, size_t* attribute_indices,
                                           size_t attribute_count, size_t* failed, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
  return run([&] {
    return driver.cuMemcpyBatchAsync(mode, device_pointer_out(targets), device_pointer_out(sources), sizes, count,
                                     reinterpret_cast<CUmemcpyAttributes*>(attributes), attribute_indices,
                                     attribute_count, failed, stream);
  });
}

cudaError_t streamed::cudaMemcpy3DBatchAsync(Mode mode, size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed,
                                             unsigned long long flags, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
  return run([&] {
    return driver.cuMemcpy3DBatchAsync(mode, count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(operations), failed,
                                       flags, stream);
  });
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;
using Node = cudaGraphNode_t;

extern "C" cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, int device) {
  return run([&] {
    return driver.cuMemAdvise(device_pointer(pointer), count, static_cast<CUmem_advise>(advice), location_of(device));
  });
}

extern "C" cudaError_t cudaGraphGetEdges(cudaGraph_t graph, Node* from, Node* to, size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}

extern "C" cudaError_t cudaGraphNodeGetDependencies(Node node, Node* dependencies, size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

extern "C" cudaError_t cudaGraphNodeGetDependentNodes(Node node, Node* dependents, size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count);
}

extern "C" cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const Node* from, const Node* to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

extern "C" cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const Node* from, const Node* to, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

extern "C" cudaError_t cudaGraphAddNode(Node* node, cudaGraph_t graph, const Node* dependencies, size_t count,
                                        cudaGraphNodeParams* params) {
  return cudaGraphAddNode_v2(node, graph, dependencies, nullptr, count, params);
}

extern "C" cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return run([&] { return driver.cuEventElapsedTime(milliseconds, start, end); });
}

extern "C" cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
extern "C" cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
extern "C" cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
extern "C" cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
extern "C" cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) { return cudaDeviceGetCacheConfig(config); }
extern "C" cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }

// Every device has double precision.
extern "C" cudaError_t cudaSetDoubleForDevice(double*) { return cudaSuccess; }
extern "C" cudaError_t cudaSetDoubleForHost(double*) { return cudaSuccess; }
