// Notices as the records of cupti_activity.h, in the size that the layout has, handed to the collector.
#pragma once

#include "simgpu/cupti/headers.h"
#include "simgpu/driver/observe/observer.h"

namespace simgpu::cupti {

void record_kernel(const KernelNotice& notice, CUpti_ActivityKind kind, bool latency_stamps);
void record_copy(const CopyNotice& notice);
void record_peer_copy(const CopyNotice& notice);
void record_memset(const MemsetNotice& notice);
void record_graph(const GraphNotice& notice);
void record_call(const CallNotice& notice, uint32_t number, uint32_t thread);
void record_external(CUpti_ExternalCorrelationKind kind, uint64_t id, uint32_t correlation);
void record_sync(const SyncNotice& notice, int result);
void record_memory(const MemoryNotice& notice);
void record_pool(const PoolNotice& notice);
// The driver has emptied a device buffer of its own.
void record_buffer_flush(Nanos begin, Nanos end, uint32_t thread);
void record_device(uint32_t device, const DeviceFacts& facts);
void record_context(uint32_t context, uint32_t device);
void record_stream(uint32_t context, uint32_t stream, uint32_t priority, CUpti_ActivityStreamFlag flag,
                   uint32_t correlation);
void record_environment(uint32_t device, Nanos at, uint64_t sample);
void record_jit(const ResourceNotice& notice, uint32_t thread);

// Kernels' names in records are gone from here on: they read "~~~".
void forget_names();

}  // namespace simgpu::cupti
