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

// Copies an activity out of CUPTI's buffer, checks its times and makes our record of it: times here, the rest by
// `fill`.
template <typename Layout, typename Record>
ParseResult parse(const void* activity, u64 available, const RecordRules& rules, AnyDeviceRecord& out, Record& record,
                  void (*fill)(const Layout& in, Record& record)) {
  Layout in;
  if (available < sizeof in) return ParseResult::Unreadable;
  std::memcpy(&in, activity, sizeof in);
  constexpr bool kLasts = requires { in.start; };
  ParseResult times;
  if constexpr (kLasts)
    times = check_times(in.start, in.end, rules);
  else
    times = check_times(in.timestamp, in.timestamp, rules);
  if (times != ParseResult::Record) return times;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  out.header.type = static_cast<u16>(Record::kType);
  out.header.size = sizeof(Record);
  if constexpr (kLasts) {
    record.start = in.start;
    record.finish = in.end;
  } else {
    record.at = in.timestamp;
  }
  fill(in, record);
  return ParseResult::Record;
}

// What all work on a device has.
template <typename Layout, typename Record>
void fill_place(const Layout& in, Record& record) {
  record.correlation = in.correlation;
  record.graph = in.graph;
  record.device = in.device;
  record.context = in.context;
  record.stream = in.stream;
}

u16 small(u32 value) { return value > 0xffff ? u16{0xffff} : static_cast<u16>(value); }
u32 count_of(i32 value) { return value < 0 ? 0u : static_cast<u32>(value); }

// Optional stamps: one that does not come before the start is no stamp.
u64 stamp_before(u64 stamp, u64 start, const RecordRules& rules) {
  return rules.latency && stamp >= rules.earliest && stamp <= start ? stamp : 0;
}

void fill_kernel(const cupti_layout::Kernel& in, DeviceKernel& kernel) {
  kernel.queued = in.queued;
  kernel.submitted = in.submitted;
  kernel.graph_node = in.graph_node;
  fill_place(in, kernel);
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
}

// A kernel has more to it than its layout: optional stamps, a name, what later versions added.
ParseResult parse_kernel(const void* activity, u64 available, const RecordRules& rules, AnyDeviceRecord& out,
                         const char*& name) {
  DeviceKernel& kernel = out.kernel;
  const ParseResult result = parse(activity, available, rules, out, kernel, fill_kernel);
  if (result != ParseResult::Record) return result;
  kernel.queued = stamp_before(kernel.queued, kernel.start, rules);
  kernel.submitted = stamp_before(kernel.submitted, kernel.start, rules);
  const u8* bytes = static_cast<const u8*>(activity);
  if (rules.version >= kCupti13_0 && available > cupti_layout::kKernelDeviceLaunched &&
      bytes[cupti_layout::kKernelDeviceLaunched] == 1)
    kernel.flags |= kDeviceLaunched;
  std::memcpy(&name, bytes + offsetof(cupti_layout::Kernel, name), sizeof name);
  return result;
}

template <typename Layout>
void fill_copy(const Layout& in, DeviceCopy& copy) {
  copy.bytes = in.bytes;
  copy.graph_node = in.graph_node;
  fill_place(in, copy);
  copy.source_device = copy.destination_device = -1;
  if constexpr (requires { in.source_device; }) {
    copy.source_device = static_cast<i32>(in.source_device);
    copy.destination_device = static_cast<i32>(in.destination_device);
  }
  copy.kind = in.copy_kind;
  copy.source_memory = in.source_kind;
  copy.destination_memory = in.destination_kind;
  copy.asynchronous = (in.flags & cupti_layout::kCopyAsync) != 0;
}

void fill_memset(const cupti_layout::Memset& in, DeviceMemset& memset) {
  memset.bytes = in.bytes;
  memset.graph_node = in.graph_node;
  fill_place(in, memset);
  memset.memory = in.memory_kind;
  memset.asynchronous = (in.flags & cupti_layout::kMemsetAsync) != 0;
}

void fill_graph(const cupti_layout::GraphTrace& in, DeviceGraph& graph) { fill_place(in, graph); }

void fill_api(const cupti_layout::Api& in, DeviceApi& api) {
  api.correlation = in.correlation;
  api.thread = in.thread;
  api.callback = in.callback;
  api.level = static_cast<u32>(in.kind == kKindDriver ? ApiLevel::Driver : ApiLevel::Runtime);
}

void fill_overhead(const cupti_layout::Overhead& in, DeviceOverhead& overhead) {
  overhead.kind = in.overhead_kind;
  overhead.thread = in.object_kind == cupti_layout::kObjectThread ? in.object[1] : 0;
}

void fill_jit(const cupti_layout::Jit& in, DeviceJit& jit) {
  jit.bytes = in.cache_size;
  jit.kind = in.entry;
  jit.operation = in.operation;
  jit.correlation = in.correlation;
  jit.device = in.device;
}

void fill_environment(const cupti_layout::Environment& in, DeviceEnvironment& environment) {
  environment.device = in.device;
  environment.kind = in.environment_kind;
  environment.first = in.data[0];
  environment.second = in.data[1];
  environment.third = in.environment_kind == 1 ? in.data[4] : 0;  // speed: why the clocks are what they are
}

}  // namespace

u32 activity_kind(const void* record, u64 available) {
  u32 kind = 0;
  if (available >= sizeof kind) std::memcpy(&kind, record, sizeof kind);
  return kind;
}

void* details_to_free(const void* record, u64 available, u32 version) {
  cupti_layout::OverheadDetails in;
  if (version < kCupti12_4 || available < sizeof in || activity_kind(record, available) != kKindOverhead)
    return nullptr;
  std::memcpy(&in, record, sizeof in);
  return in.overhead.overhead_kind == cupti_layout::kCommandBufferFull ? in.data : nullptr;
}

ParseResult parse_activity(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out,
                           const char*& name) {
  name = nullptr;
  const auto parse_as = [&](auto& ours, auto* fill) { return parse(record, available, rules, out, ours, fill); };
  switch (activity_kind(record, available)) {
    case kKindKernel:
    case kKindConcurrentKernel:
      return parse_kernel(record, available, rules, out, name);
    case kKindMemcpy:
      return parse_as(out.copy, fill_copy<cupti_layout::Memcpy>);
    case kKindMemcpy2:
      return parse_as(out.copy, fill_copy<cupti_layout::MemcpyPeer>);
    case kKindMemset:
      return parse_as(out.memset, fill_memset);
    case kKindGraphTrace:
      return parse_as(out.graph, fill_graph);
    case kKindDriver:
    case kKindRuntime:
      return parse_as(out.api, fill_api);
    case kKindOverhead:
      return parse_as(out.overhead, fill_overhead);
    case kKindJit:
      return parse_as(out.jit, fill_jit);
    case kKindEnvironment:
      return parse_as(out.environment, fill_environment);
    case 0:
      return ParseResult::Unreadable;
    default:
      return ParseResult::Skipped;
  }
}

}  // namespace gputrace
