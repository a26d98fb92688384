#include "simgpu/cupti/records.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "simgpu/cupti/collector.h"
#include "simgpu/cupti/device_clock.h"
#include "simgpu/cupti/knobs.h"
#include "simgpu/cupti/layout.h"

namespace simgpu::cupti {

namespace {

// Names that records point to, until cuptiFinalize. Their memory stays, so that who reads them later reads nonsense instead of crashing.
struct Names {
  std::mutex mutex;
  std::map<std::string, std::string*> kept;  // text → what records point to
  std::atomic<uint32_t> era{0};
};

Names& names() {
  static auto* const kNames = new Names;
  return *kNames;
}

// Asked for once: a system call for each record would be the dearest part of it, and a forked child has no records (entry.cpp refuses it).
uint32_t process_id() {
  static const auto kOwn = static_cast<uint32_t>(getpid());
  return kOwn;
}

const char* keep(const char* text) {
  struct Recent {
    const char* given = nullptr;
    const char* kept = nullptr;
    uint32_t era = 0;
  };
  static thread_local std::array<Recent, 64> recent;  // by address: a thread launches the same few kernels in turn
  Names& all = names();
  const uint32_t era = all.era.load();
  Recent& own = recent[reinterpret_cast<uintptr_t>(text) / 16 % recent.size()];
  if (own.given == text && own.era == era && std::strcmp(text, own.kept) == 0) return own.kept;
  std::lock_guard lock(all.mutex);
  std::string*& kept = all.kept[text];
  if (kept == nullptr) kept = new std::string(text);
  own = {text, kept->c_str(), era};
  return own.kept;
}

struct Stamps {
  bool lost = false;
  uint64_t number = 0;
  uint64_t start = 0;
  uint64_t end = 0;
};

// Drawn once per device record: its number decides jitter, drop= and zero=.
Stamps stamps_of(Nanos start, Nanos end) {
  const Knobs& k = knobs();
  Stamps stamps;
  stamps.number = next_record_number();
  if (k.drop_every != 0 && stamps.number % k.drop_every == 0) {
    drop(1);
    stamps.lost = true;
    return stamps;
  }
  if (k.zero_every != 0 && stamps.number % k.zero_every == 0) return stamps;
  stamps.start = jittered(start, stamps.number, 0);
  stamps.end = std::max(stamps.start, jittered(end, stamps.number, 1));
  return stamps;
}

template <class Record>
RecordKind device_kind(const OperationNotice& notice) {
  RecordKind kind;
  kind.known_at = notice.end;
  kind.device = true;
  kind.stream = notice.stream;
  kind.stamps[0] = offsetof(Record, start);
  kind.stamps[1] = offsetof(Record, end);
  kind.start = notice.start;
  return kind;
}

// Records of the host's: a span, or a moment.
template <class Record>
RecordKind span_kind() {
  RecordKind kind;
  kind.stamps[0] = offsetof(Record, start);
  kind.stamps[1] = offsetof(Record, end);
  return kind;
}

template <class Record>
RecordKind moment_kind() {
  RecordKind kind;
  kind.stamps[0] = offsetof(Record, timestamp);
  return kind;
}

// False: the record is lost.
template <class Record>
bool begin(Record& record, const OperationNotice& notice, Stamps* stamps) {
  *stamps = stamps_of(notice.start, notice.end);
  record.start = stamps->start;
  record.end = stamps->end;
  record.deviceId = notice.device;
  record.contextId = notice.context;
  record.streamId = notice.stream;
  record.correlationId = notice.correlation;
  return !stamps->lost;
}

// A channel per stream, as a device with enough of them would have it.
template <class Record>
void put_channel(Record& record, uint32_t stream, CUpti_ChannelType type) {
  record.channelID = stream;
  record.channelType = type;
}

// Records of a layout that has a longer one than we know: the tail is noise.
void add(const void* record, size_t known, size_t size, const RecordKind& kind) {
  if (size <= known) {
    add_record(record, size, kind);
    return;
  }
  char longer[kLargestRecord];
  std::memset(longer, 0xa5, sizeof longer);
  std::memcpy(longer, record, known);
  add_record(longer, size, kind);
}

uint8_t copy_kind_of(const CopyNotice& n) {
  const auto place = [](SeenMemory memory) {
    if (memory == SeenMemory::array) return 'A';
    return memory == SeenMemory::pageable || memory == SeenMemory::pinned ? 'H' : 'D';
  };
  const char from = place(n.source);
  const char to = place(n.destination);
  if (n.peer) return CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  if (from == 'H' && to == 'D') return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  if (from == 'D' && to == 'H') return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  if (from == 'H' && to == 'A') return CUPTI_ACTIVITY_MEMCPY_KIND_HTOA;
  if (from == 'A' && to == 'H') return CUPTI_ACTIVITY_MEMCPY_KIND_ATOH;
  if (from == 'A' && to == 'A') return CUPTI_ACTIVITY_MEMCPY_KIND_ATOA;
  if (from == 'A') return CUPTI_ACTIVITY_MEMCPY_KIND_ATOD;
  if (to == 'A') return CUPTI_ACTIVITY_MEMCPY_KIND_DTOA;
  return from == 'H' ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOH : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

template <class Record>
void fill_copy(Record& record, const CopyNotice& notice) {
  record.copyKind = copy_kind_of(notice);
  record.srcKind = static_cast<uint8_t>(notice.source);
  record.dstKind = static_cast<uint8_t>(notice.destination);
  record.flags = notice.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  record.bytes = notice.bytes;
  record.graphNodeId = notice.graph_node;
  record.graphId = notice.graph;
  put_channel(record, notice.stream, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
}

}  // namespace

void record_kernel(const KernelNotice& n, CUpti_ActivityKind activity, bool latency_stamps) {
  CUpti_ActivityKernel10 record{};
  Stamps stamps;
  if (!begin(record, n, &stamps)) return;
  record.kind = activity;
  record.registersPerThread = static_cast<uint16_t>(n.registers);
  record.gridX = static_cast<int32_t>(n.grid[0]);
  record.gridY = static_cast<int32_t>(n.grid[1]);
  record.gridZ = static_cast<int32_t>(n.grid[2]);
  record.blockX = static_cast<int32_t>(n.block[0]);
  record.blockY = static_cast<int32_t>(n.block[1]);
  record.blockZ = static_cast<int32_t>(n.block[2]);
  record.staticSharedMemory = static_cast<int32_t>(n.static_shared);
  record.dynamicSharedMemory = static_cast<int32_t>(n.dynamic_shared);
  record.localMemoryPerThread = n.local_bytes;
  record.gridId = static_cast<int64_t>(stamps.number);
  record.name = keep(n.symbol);
  record.launchType =
      n.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  record.sharedMemoryExecuted = n.static_shared + n.dynamic_shared;
  record.graphNodeId = n.graph_node;
  record.graphId = n.graph;
  put_channel(record, n.stream, CUPTI_CHANNEL_TYPE_COMPUTE);
  if (n.cluster[0] * n.cluster[1] * n.cluster[2] > 1) {
    record.clusterX = n.cluster[0];
    record.clusterY = n.cluster[1];
    record.clusterZ = n.cluster[2];
  }
  record.completed = record.end;
  if (latency_stamps && n.graph == 0 && record.start != 0) {
    // Where the model has them: the command is built half-way through the latency, and submitted when it is over.
    const Nanos latency = n.start > n.called ? n.start - n.called : 0;
    record.queued = jittered(n.called + latency / 4, stamps.number, 2);
    record.submitted = std::max<uint64_t>(record.queued, jittered(n.called + latency / 2, stamps.number, 3));
  }
  RecordKind kind = device_kind<CUpti_ActivityKernel10>(n);
  kind.stamps[2] = offsetof(CUpti_ActivityKernel10, completed);
  kind.stamps[3] = offsetof(CUpti_ActivityKernel10, queued);
  kind.stamps[4] = offsetof(CUpti_ActivityKernel10, submitted);
  add(&record, sizeof record, layout().kernel, kind);
}

void record_copy(const CopyNotice& n) {
  CUpti_ActivityMemcpy6 record{};
  Stamps stamps;
  if (!begin(record, n, &stamps)) return;
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  fill_copy(record, n);
  record.copyCount = 1;
  add(&record, sizeof record, layout().copy, device_kind<CUpti_ActivityMemcpy6>(n));
}

void record_peer_copy(const CopyNotice& n) {
  CUpti_ActivityMemcpyPtoP4 record{};
  Stamps stamps;
  if (!begin(record, n, &stamps)) return;
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  fill_copy(record, n);
  record.srcDeviceId = n.source_device;
  record.dstDeviceId = n.destination_device;
  record.srcContextId = n.source_context;
  record.dstContextId = n.destination_context;
  add(&record, sizeof record, layout().peer_copy, device_kind<CUpti_ActivityMemcpyPtoP4>(n));
}

void record_memset(const MemsetNotice& n) {
  CUpti_ActivityMemset4 record{};
  Stamps stamps;
  if (!begin(record, n, &stamps)) return;
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.value = n.value;
  record.bytes = n.bytes;
  record.flags = n.async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  record.memoryKind = static_cast<uint16_t>(n.memory);
  record.graphNodeId = n.graph_node;
  record.graphId = n.graph;
  put_channel(record, n.stream, CUPTI_CHANNEL_TYPE_COMPUTE);
  add(&record, sizeof record, layout().memset, device_kind<CUpti_ActivityMemset4>(n));
}

void record_graph(const GraphNotice& n) {
  CUpti_ActivityGraphTrace2 record{};
  Stamps stamps;
  if (!begin(record, n, &stamps)) return;
  record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  record.graphId = n.graph;
  record.endDeviceId = n.device;
  record.endContextId = n.context;
  add(&record, sizeof record, layout().graph, device_kind<CUpti_ActivityGraphTrace2>(n));
}

void record_call(const CallNotice& n, uint32_t number, uint32_t thread) {
  CUpti_ActivityAPI record{};
  record.kind = n.runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  record.cbid = number;
  record.start = n.begin;
  record.end = n.end;
  record.processId = process_id();
  record.threadId = thread;
  record.correlationId = n.correlation;
  record.returnValue = static_cast<uint32_t>(n.result);
  add_record(&record, sizeof record, span_kind<CUpti_ActivityAPI>());
}

void record_external(CUpti_ExternalCorrelationKind kind, uint64_t id, uint32_t correlation) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = kind;
  record.externalId = id;
  record.correlationId = correlation;
  add_record(&record, sizeof record, {});
}

void record_sync(const SyncNotice& n, int result) {
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = static_cast<CUpti_ActivitySynchronizationType>(n.kind);
  record.start = n.begin;
  record.end = n.end;
  record.correlationId = n.correlation;
  record.contextId = n.context;
  record.streamId = n.stream == ~0u ? static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE) : n.stream;
  record.cudaEventId = n.event == ~0u ? static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE) : n.event;
  record.returnValue = static_cast<uint32_t>(result);
  add(&record, sizeof record, layout().sync, span_kind<CUpti_ActivitySynchronization2>());
}

void record_memory(const MemoryNotice& n) {
  CUpti_ActivityMemory4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.memoryOperationType =
      n.allocation ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(n.memory);
  record.correlationId = n.correlation;
  record.address = n.address;
  record.bytes = n.bytes;
  record.timestamp = n.at;
  record.processId = process_id();
  record.deviceId = n.device;
  record.contextId = n.context;
  record.streamId = n.stream == ~0u ? static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE) : n.stream;
  record.isAsync = n.async ? 1 : 0;
  record.memoryPoolConfig.address = n.pool;
  if (n.pool != 0) record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  add(&record, sizeof record, layout().memory, moment_kind<CUpti_ActivityMemory4>());
}

void record_pool(const PoolNotice& n) {
  CUpti_ActivityMemoryPool3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  record.memoryPoolOperationType = static_cast<CUpti_ActivityMemoryPoolOperationType>(n.act);
  record.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  record.correlationId = n.correlation;
  record.processId = process_id();
  record.deviceId = n.device;
  record.minBytesToKeep = n.keep;
  record.address = n.pool;
  record.size = n.reserved;
  record.releaseThreshold = n.threshold;
  record.timestamp = n.at;
  record.utilizedSize = n.used;
  add(&record, sizeof record, layout().pool, moment_kind<CUpti_ActivityMemoryPool3>());
}

void record_buffer_flush(Nanos begin, Nanos end, uint32_t thread) {
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = process_id();
  record.objectId.pt.threadId = thread;
  record.start = begin;
  record.end = end;
  RecordKind kind = span_kind<CUpti_ActivityOverhead3>();
  kind.known_at = end;
  add(&record, sizeof record, layout().overhead, kind);
}

void record_device(uint32_t device, const DeviceFacts& facts) {
  CUpti_ActivityDevice5 record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.globalMemorySize = facts.memory_bytes;
  record.numThreadsPerWarp = 32;
  record.numMemcpyEngines = 2;
  record.numMultiprocessors = static_cast<uint32_t>(facts.sms);
  record.computeCapabilityMajor = static_cast<uint32_t>(facts.cc_major);
  record.computeCapabilityMinor = static_cast<uint32_t>(facts.cc_minor);
  record.id = device;
  record.uuid = facts.uuid;
  record.name = keep(facts.name);
  record.isCudaVisible = 1;
  add(&record, sizeof record, layout().device, {});
}

void record_context(uint32_t context, uint32_t device) {
  CUpti_ActivityContext3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  record.contextId = context;
  record.deviceId = device;
  record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  add(&record, sizeof record, layout().context, {});
}

void record_stream(uint32_t context, uint32_t stream, uint32_t priority, CUpti_ActivityStreamFlag flag,
                   uint32_t correlation) {
  CUpti_ActivityStream record{};
  record.kind = CUPTI_ACTIVITY_KIND_STREAM;
  record.contextId = context;
  record.streamId = stream;
  record.priority = priority;
  record.flag = flag;
  record.correlationId = correlation;
  add_record(&record, sizeof record, {});
}

// A model: clocks fall in steps and are held down by the power cap in each fourth sample.
void record_environment(uint32_t device, Nanos at, uint64_t sample) {
  CUpti_ActivityEnvironment record{};
  record.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  record.deviceId = device;
  record.timestamp = at;
  record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED;
  record.data.speed.smClock = static_cast<uint32_t>(1755 - 15 * (sample % 4));
  record.data.speed.memoryClock = 2619;
  record.data.speed.pcieLinkGen = 5;
  record.data.speed.pcieLinkWidth = 16;
  record.data.speed.clocksThrottleReasons =
      sample % 4 == 3 ? CUPTI_CLOCKS_THROTTLE_REASON_SW_POWER_CAP : CUPTI_CLOCKS_THROTTLE_REASON_NONE;
  add_record(&record, sizeof record, moment_kind<CUpti_ActivityEnvironment>());
  record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE;
  record.data = {};
  record.data.temperature.gpuTemperature = static_cast<uint32_t>(42 + sample % 8);
  add_record(&record, sizeof record, moment_kind<CUpti_ActivityEnvironment>());
  record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_POWER;
  record.data = {};
  record.data.power.power = static_cast<uint32_t>(350'000 + 1000 * (sample % 10));
  record.data.power.powerLimit = 700'000;
  add_record(&record, sizeof record, moment_kind<CUpti_ActivityEnvironment>());
}

void record_jit(const ResourceNotice& n, uint32_t thread) {
  CUpti_ActivityJit2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_JIT;
  record.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
  record.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
  record.deviceId = n.device;
  record.start = n.begin;
  record.end = n.end;
  record.correlationId = n.correlation;
  record.jitOperationCorrelationId = n.correlation;
  record.processId = process_id();
  record.threadId = thread;
  add(&record, sizeof record, layout().jit, span_kind<CUpti_ActivityJit2>());
}

void forget_names() {
  Names& all = names();
  std::lock_guard lock(all.mutex);
  ++all.era;
  for (const auto& [text, kept] : all.kept) std::fill(kept->begin(), kept->end(), '~');
  all.kept.clear();
}

}  // namespace simgpu::cupti
