// Stream capture, as the calls that work on streams see it. They ask `capturing(stream)` (or, for calls that capture
// mode forbids, `capture_refuses`) before they act; what they would have done becomes a graph node instead.
// Implemented beside the graphs.
#pragma once

#include "simgpu/driver/launch/operation.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

extern std::atomic<unsigned> active_captures;  // in the process

inline bool capturing(const Stream& stream) { return stream.capture.load(std::memory_order_acquire) != nullptr; }

// Each adds a node to the stream's capture. `params`, `extra`, the attributes: as passed, valid during the call.
CUresult capture_kernel(Call& call, Stream& stream, const KernelLaunch& launch, void** params, void** extra,
                        const CUlaunchConfig* config);
CUresult capture_copy(Call& call, Stream& stream, const Copy& copy, const CUDA_MEMCPY3D& description);
CUresult capture_memset(Call& call, Stream& stream, const Memset& memset);
CUresult capture_host_function(Call& call, Stream& stream, CUhostFn function, void* data);
CUresult capture_event_record(Call& call, Stream& stream, Event& event, unsigned flags);
CUresult capture_memory_ops(Call& call, Stream& stream, unsigned count, const CUstreamBatchMemOpParams* ops);

struct ExecBody;
CUresult capture_graph_launch(Call& call, Stream& stream, const ExecBody& body);
// Memory whose address is the graph's: cuMemAllocAsync and cuMemFreeAsync.
CUresult capture_alloc(Call& call, Stream& stream, Device& device, size_t bytes, CUdeviceptr* out);
CUresult capture_free(Call& call, Stream& stream, CUdeviceptr address);

// cuStreamWaitEvent, where the stream captures or the event was recorded by a capture (which the stream then joins).
CUresult capture_event_wait(Call& call, Stream& stream, Event& event, unsigned flags);
bool event_in_capture(Event& event);

// For calls that must not happen during capture. CUDA_SUCCESS: go on.
CUresult capture_refuses_sync(Call& call, Stream& stream);    // synchronize or query of a capturing stream
CUresult capture_refuses_event(Call& call, Event& event);     // synchronize or query of an event recorded in a capture
CUresult capture_refuses_legacy(Call& call, Stream& stream);  // legacy stream used while a blocking stream captures
CUresult capture_refuses_unsafe(
    Call& call);  // potentially unsafe calls (cuMemAlloc, …) under this thread's capture mode
void capture_stream_destroyed(Stream& stream);

}  // namespace simgpu
