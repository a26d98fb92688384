#include "cupti/records.h"

#include <cstring>

#include "cupti/api.h"
#include "cupti/layout.h"

namespace gputrace {
namespace {

// A whole device activity longer than this is no measurement: 10 days.
constexpr u64 kLongest = 10ull * 24 * 3600 * 1'000'000'000;

ParseResult check_times(u64 start, u64 end, const RecordRules& rules) {
  if (start == 0 || end == 0) return ParseResult::ZeroTime;
  if (end < start || end - start > kLongest || start < rules.earliest || end > rules.latest)
    return ParseResult::Impossible;
  return ParseResult::Record;
}

template <typename Layout>
bool read_layout(const void* record, u64 available, Layout& out) {
  if (available < sizeof(Layout)) return false;
  std::memcpy(&out, record, sizeof out);
  return true;
}

template <typename Record>
Record& begin_record(AnyDeviceRecord& out, Record& record) {
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  out.header.type = static_cast<u16>(Record::kType);
  out.header.size = sizeof(Record);
  return record;
}

u16 small(u32 value) { return value > 0xffff ? u16{0xffff} : static_cast<u16>(value); }
u32 count_of(i32 value) { return value < 0 ? 0u : static_cast<u32>(value); }

// Optional stamps: one that does not come before the start is no stamp.
u64 stamp_before(u64 stamp, u64 start, const RecordRules& rules) {
  return rules.latency && stamp >= rules.earliest && stamp <= start ? stamp : 0;
}

ParseResult parse_kernel(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out,
                         const char*& name) {
  cupti_layout::Kernel in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceKernel& kernel = begin_record(out, out.kernel);
  kernel.start = in.start;
  kernel.finish = in.end;
  kernel.queued = stamp_before(in.queued, in.start, rules);
  kernel.submitted = stamp_before(in.submitted, in.start, rules);
  kernel.graph_node = in.graph_node;
  kernel.correlation = in.correlation;
  kernel.graph = in.graph;
  kernel.device = in.device;
  kernel.context = in.context;
  kernel.stream = in.stream;
  kernel.grid_x = count_of(in.grid[0]);
  kernel.grid_y = count_of(in.grid[1]);
  kernel.grid_z = count_of(in.grid[2]);
  kernel.block_x = count_of(in.block[0]);
  kernel.block_y = count_of(in.block[1]);
  kernel.block_z = count_of(in.block[2]);
  kernel.static_shared_bytes = count_of(in.static_shared);
  kernel.dynamic_shared_bytes = count_of(in.dynamic_shared);
  kernel.shared_executed_bytes = in.shared_executed;
  kernel.local_bytes = in.local_per_thread;
  kernel.registers = in.registers;
  kernel.cluster_x = small(in.cluster[0]);
  kernel.cluster_y = small(in.cluster[1]);
  kernel.cluster_z = small(in.cluster[2]);
  if (rules.version >= kCupti13_0 && available > cupti_layout::kKernelDeviceLaunched &&
      static_cast<const u8*>(record)[cupti_layout::kKernelDeviceLaunched] == 1)
    kernel.flags |= kDeviceLaunched;
  name = in.name;
  return ParseResult::Record;
}

ParseResult parse_copy(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Memcpy in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceCopy& copy = begin_record(out, out.copy);
  copy.start = in.start;
  copy.finish = in.end;
  copy.bytes = in.bytes;
  copy.graph_node = in.graph_node;
  copy.correlation = in.correlation;
  copy.graph = in.graph;
  copy.device = in.device;
  copy.context = in.context;
  copy.stream = in.stream;
  copy.source_device = copy.destination_device = -1;
  copy.kind = in.copy_kind;
  copy.source_memory = in.source_kind;
  copy.destination_memory = in.destination_kind;
  copy.asynchronous = (in.flags & cupti_layout::kCopyAsync) != 0;
  return ParseResult::Record;
}

ParseResult parse_peer_copy(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::MemcpyPeer in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceCopy& copy = begin_record(out, out.copy);
  copy.start = in.start;
  copy.finish = in.end;
  copy.bytes = in.bytes;
  copy.graph_node = in.graph_node;
  copy.correlation = in.correlation;
  copy.graph = in.graph;
  copy.device = in.device;
  copy.context = in.context;
  copy.stream = in.stream;
  copy.source_device = static_cast<i32>(in.source_device);
  copy.destination_device = static_cast<i32>(in.destination_device);
  copy.kind = in.copy_kind;
  copy.source_memory = in.source_kind;
  copy.destination_memory = in.destination_kind;
  copy.asynchronous = (in.flags & cupti_layout::kCopyAsync) != 0;
  return ParseResult::Record;
}

ParseResult parse_memset(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Memset in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceMemset& memset = begin_record(out, out.memset);
  memset.start = in.start;
  memset.finish = in.end;
  memset.bytes = in.bytes;
  memset.graph_node = in.graph_node;
  memset.correlation = in.correlation;
  memset.graph = in.graph;
  memset.device = in.device;
  memset.context = in.context;
  memset.stream = in.stream;
  memset.memory = in.memory_kind;
  memset.asynchronous = (in.flags & cupti_layout::kMemsetAsync) != 0;
  return ParseResult::Record;
}

ParseResult parse_graph(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::GraphTrace in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceGraph& graph = begin_record(out, out.graph);
  graph.start = in.start;
  graph.finish = in.end;
  graph.correlation = in.correlation;
  graph.graph = in.graph;
  graph.device = in.device;
  graph.context = in.context;
  graph.stream = in.stream;
  return ParseResult::Record;
}

ParseResult parse_sync(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Synchronization in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceSync& sync = begin_record(out, out.sync);
  sync.start = in.start;
  sync.finish = in.end;
  sync.correlation = in.correlation;
  sync.kind = in.type;
  sync.context = in.context;
  sync.stream = in.stream;
  sync.event = in.event;
  return ParseResult::Record;
}

ParseResult parse_api(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Api in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceApi& api = begin_record(out, out.api);
  api.start = in.start;
  api.finish = in.end;
  api.correlation = in.correlation;
  api.thread = in.thread;
  api.callback = in.callback;
  api.level = in.kind == kKindDriver ? 1 : 2;
  return ParseResult::Record;
}

ParseResult parse_overhead(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Overhead in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceOverhead& overhead = begin_record(out, out.overhead);
  overhead.start = in.start;
  overhead.finish = in.end;
  overhead.kind = in.overhead_kind;
  overhead.thread = in.object_kind == cupti_layout::kObjectThread ? in.object[1] : 0;
  return ParseResult::Record;
}

ParseResult parse_jit(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Jit in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.start, in.end, rules);
  if (times != ParseResult::Record) return times;
  DeviceJit& jit = begin_record(out, out.jit);
  jit.start = in.start;
  jit.finish = in.end;
  jit.bytes = in.cache_size;
  jit.kind = in.entry;
  jit.operation = in.operation;
  jit.correlation = in.correlation;
  jit.device = in.device;
  return ParseResult::Record;
}

ParseResult parse_pool(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::MemoryPool in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.timestamp, in.timestamp, rules);
  if (times != ParseResult::Record) return times;
  DevicePool& pool = begin_record(out, out.pool);
  pool.at = in.timestamp;
  pool.pool = in.address;
  pool.bytes = in.size;
  pool.used_bytes = in.utilized;
  pool.release_threshold = in.release_threshold;
  pool.device = in.device;
  pool.operation = in.operation;
  return ParseResult::Record;
}

ParseResult parse_environment(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out) {
  cupti_layout::Environment in;
  if (!read_layout(record, available, in)) return ParseResult::Unreadable;
  const ParseResult times = check_times(in.timestamp, in.timestamp, rules);
  if (times != ParseResult::Record) return times;
  DeviceEnvironment& environment = begin_record(out, out.environment);
  environment.at = in.timestamp;
  environment.device = in.device;
  environment.kind = in.environment_kind;
  environment.first = in.data[0];
  environment.second = in.data[1];
  environment.third = in.environment_kind == 1 ? in.data[4] : 0;  // speed: why the clocks are what they are
  return ParseResult::Record;
}

}  // namespace

u32 activity_kind(const void* record, u64 available) {
  u32 kind = 0;
  if (available >= sizeof kind) std::memcpy(&kind, record, sizeof kind);
  return kind;
}

ParseResult parse_activity(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out,
                           const char*& name) {
  name = nullptr;
  switch (activity_kind(record, available)) {
    case kKindKernel:
    case kKindConcurrentKernel:
      return parse_kernel(record, available, rules, out, name);
    case kKindMemcpy:
      return parse_copy(record, available, rules, out);
    case kKindMemcpy2:
      return parse_peer_copy(record, available, rules, out);
    case kKindMemset:
      return parse_memset(record, available, rules, out);
    case kKindGraphTrace:
      return parse_graph(record, available, rules, out);
    case kKindSynchronization:
      return parse_sync(record, available, rules, out);
    case kKindDriver:
    case kKindRuntime:
      return parse_api(record, available, rules, out);
    case kKindOverhead:
      return parse_overhead(record, available, rules, out);
    case kKindJit:
      return parse_jit(record, available, rules, out);
    case kKindMemoryPool:
      return parse_pool(record, available, rules, out);
    case kKindEnvironment:
      return parse_environment(record, available, rules, out);
    case 0:
      return ParseResult::Unreadable;
    default:
      return ParseResult::Skipped;
  }
}

}  // namespace gputrace
