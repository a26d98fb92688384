#include "simgpu/runtime/life/majors.h"
#include "simgpu/runtime/life/streamed.h"

// Streams, events, capture.
namespace simgpu::runtime {

static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

cudaError_t streamed::cudaStreamGetPriority(Mode mode, cudaStream_t stream, int* priority) {
  return run([&] { return driver.cuStreamGetPriority(mode, stream, priority); });
}

cudaError_t streamed::cudaStreamGetFlags(Mode mode, cudaStream_t stream, unsigned* flags) {
  return run([&] { return driver.cuStreamGetFlags(mode, stream, flags); });
}

cudaError_t streamed::cudaStreamGetId(Mode mode, cudaStream_t stream, unsigned long long* id) {
  return run([&] { return driver.cuStreamGetId(mode, stream, id); });
}

cudaError_t streamed::cudaStreamGetDevice(Mode mode, cudaStream_t stream, int* device) {
  return run([&] { return driver.cuStreamGetDevice(mode, stream, device); });
}

cudaError_t streamed::cudaStreamCopyAttributes(Mode mode, cudaStream_t target, cudaStream_t source) {
  return run([&] { return driver.cuStreamCopyAttributes(mode, target, source); });
}

cudaError_t streamed::cudaStreamGetAttribute(Mode mode, cudaStream_t stream, cudaStreamAttrID attribute,
                                             cudaStreamAttrValue* value) {
  return run([&] {
    return driver.cuStreamGetAttribute(mode, stream, static_cast<CUstreamAttrID>(attribute),
                                       reinterpret_cast<CUstreamAttrValue*>(value));
  });
}

cudaError_t streamed::cudaStreamSetAttribute(Mode mode, cudaStream_t stream, cudaStreamAttrID attribute,
                                             const cudaStreamAttrValue* value) {
  return run([&] {
    return driver.cuStreamSetAttribute(mode, stream, static_cast<CUstreamAttrID>(attribute),
                                       reinterpret_cast<const CUstreamAttrValue*>(value));
  });
}

cudaError_t streamed::cudaStreamWaitEvent(Mode mode, cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return run([&] { return driver.cuStreamWaitEvent(mode, stream, event, flags); });
}

cudaError_t streamed::cudaStreamAddCallback(Mode mode, cudaStream_t stream, cudaStreamCallback_t callback,
                                            void* user_data, unsigned flags) {
  return run([&] {
    // Same calling convention and the same numbers: only the result's type has another name.
    return driver.cuStreamAddCallback(mode, stream, reinterpret_cast<CUstreamCallback>(callback), user_data, flags);
  });
}

cudaError_t streamed::cudaStreamSynchronize(Mode mode, cudaStream_t stream) {
  return run([&] { return driver.cuStreamSynchronize(mode, stream); });
}

cudaError_t streamed::cudaStreamQuery(Mode mode, cudaStream_t stream) {
  return run([&] { return driver.cuStreamQuery(mode, stream); });
}

cudaError_t streamed::cudaStreamAttachMemAsync(Mode mode, cudaStream_t stream, void* pointer, size_t length,
                                               unsigned flags) {
  return run([&] { return driver.cuStreamAttachMemAsync(mode, stream, device_pointer(pointer), length, flags); });
}

cudaError_t streamed::cudaStreamBeginCapture(Mode mode, cudaStream_t stream, cudaStreamCaptureMode capture) {
  return run([&] { return driver.cuStreamBeginCapture(mode, stream, static_cast<CUstreamCaptureMode>(capture)); });
}

cudaError_t streamed::cudaStreamBeginCaptureToGraph(Mode mode, cudaStream_t stream, cudaGraph_t graph,
                                                    const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                                                    size_t count, cudaStreamCaptureMode capture) {
  return run([&] {
    return driver.cuStreamBeginCaptureToGraph(mode, stream, graph, dependencies,
                                              reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                              static_cast<CUstreamCaptureMode>(capture));
  });
}

cudaError_t streamed::cudaStreamEndCapture(Mode mode, cudaStream_t stream, cudaGraph_t* graph) {
  return run([&] { return driver.cuStreamEndCapture(mode, stream, graph); });
}

cudaError_t streamed::cudaStreamIsCapturing(Mode mode, cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return run(
      [&] { return driver.cuStreamIsCapturing(mode, stream, reinterpret_cast<CUstreamCaptureStatus*>(status)); });
}

cudaError_t streamed::GT_NAME(cudaStreamGetCaptureInfo,
                              cudaStreamGetCaptureInfo_v3)(Mode mode, cudaStream_t stream,
                                                           cudaStreamCaptureStatus* status, unsigned long long* id,
                                                           cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                                           const cudaGraphEdgeData** edges, size_t* count) {
  return run([&] {
    return driver.cuStreamGetCaptureInfo(mode, stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                         reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                         reinterpret_cast<const CUgraphEdgeData**>(edges), count);
  });
}

cudaError_t streamed::GT_NAME(cudaStreamUpdateCaptureDependencies,
                              cudaStreamUpdateCaptureDependencies_v2)(Mode mode, cudaStream_t stream,
                                                                      cudaGraphNode_t* dependencies,
                                                                      const cudaGraphEdgeData* edges, size_t count,
                                                                      unsigned flags) {
  return run([&] {
    return driver.cuStreamUpdateCaptureDependencies(mode, stream, dependencies,
                                                    reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
  });
}

cudaError_t streamed::cudaEventRecord(Mode mode, cudaEvent_t event, cudaStream_t stream) {
  return run([&] { return driver.cuEventRecord(mode, event, stream); });
}

cudaError_t streamed::cudaEventRecordWithFlags(Mode mode, cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return run([&] { return driver.cuEventRecordWithFlags(mode, event, stream, flags); });
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return run([&] { return driver.cuStreamCreateWithPriority(stream, flags, priority); });
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return as_itself([&] { return cudaStreamCreateWithPriority(stream, flags, 0); });
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return as_itself([&] { return cudaStreamCreateWithPriority(stream, 0, 0); });
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return run([&] { return driver.cuStreamDestroy(stream); });
}

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return run([&] { return driver.cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)); });
}

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return run([&] { return driver.cuEventCreate(event, flags); });
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return as_itself([&] { return cudaEventCreateWithFlags(event, 0); });
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t event) {
  return run([&] { return driver.cuEventQuery(event); });
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return run([&] { return driver.cuEventSynchronize(event); });
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return run([&] { return driver.cuEventDestroy(event); });
}

extern "C" cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return run([&] { return driver.cuEventElapsedTime(milliseconds, start, end); });
}
