// What the devices did, as facts that reports read: device time, idle, streams, how records were joined to calls.
// Made by timeline/ in the pass of ProcessBuilder; constant afterwards. Times are CLOCK_MONOTONIC ns, lengths ns.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "analysis/facts/device_environment.h"
#include "analysis/facts/distribution.h"
#include "analysis/facts/queue_depth.h"
#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

// Device times of the executions of one kernel (in one shape).
struct KernelTimes {
  Distribution durations;  // of the records that were delivered
};

// Launches of one function whose kernel was joined: how long each waited.
struct LaunchTimes {
  Distribution latency;  // call begin → kernel start
  u64 queue_ns = 0;      // sum of max(0, start − call end)
  u64 gap_ns = 0;  // sum of true launch gaps: max(0, start − max(call end, last end of what it had to wait for))
  u64 short_kernels = 0;  // ran shorter than their own launch call
  u64 blocked = 0;        // calls of more than 50 us made while at least kFullQueue operations waited in the stream
  u64 blocked_ns = 0;     // host time in those calls
  static constexpr u32 kFullQueue = 512;
  // Of the launches whose latency stamps were told:
  u64 to_queued_ns = 0;    // sum of max(0, queued − call begin)
  Distribution in_buffer;  // queued → submitted: the command buffer was filled and given to the device
  Distribution to_start;   // submitted → kernel start
};

// Why a device did nothing. Each instant of a gap has one: gaps/gap_division.h. The order decides between equal parts.
enum class IdleCause : u8 {
  Unknown,
  Launch,           // the launching thread was in a launch call, or in one that only orders work
  Host,             // it was in no CUDA call
  Synchronization,  // it was in a wait
  Polling,          // it asked again and again whether the device was done
  Copy,             // it was in a copy or memset call
  Allocation,       // it allocated or freed
  ModuleLoad,       // it loaded or compiled machine code
  Library,          // it was in a call of a vendor's library, and in no CUDA call within
  QueueFull,        // it was in a launch call that waited for room
  OtherStream,      // launched in time: the next operation waited for another stream
  Peer,             // ... for an operation of another device
  HostFunction,     // ... for a function of the program's, put into the stream
  MemoryValue,      // ... for a value in memory
  GraphInternal,    // between two nodes of one graph replay
  Collection,       // tracing held the launching thread: CUPTI's work or our own
  Dispatch,         // launched in time, and nothing to wait for: the device's own way
};
inline constexpr unsigned kIdleCauses = 17;
using IdleParts = std::array<Nanos, kIdleCauses>;  // by cause

// A thread's own work between two calls that act on a device or wait.
struct HostPause {
  Nanos length = 0;           // without other calls and what the tracing took
  u32 after = 0, before = 0;  // from where those two calls were made: numbers of a CallOrigin
};

// A time in which a device had nothing to do, between two operations of it.
struct IdleGap {
  i32 device = -1;
  Nanos begin = 0, end = 0;
  IdleParts parts{};  // sum to its length
  u16 call = 0;       // that took most of the largest part that has one to blame (id); 0: none
  u32 origin = 0;     // from where the call that ended it was made: number of a CallOrigin
  u32 thread = 0;     // that made it: index in the trace
  Nanos called = 0;   // when it did; at most `end`
  u32 sampled = 0;    // where samples found that thread most often before it called: SampleFacts::frames; 0: nowhere
  HostPause pause;    // the longest of Host's part
  Nanos between_launches = 0;  // of Host's part: in pauses of at most kLaunchPause between two launches
  u8 ended_by = 0;             // kind of the operation that ended it, while the timeline is made
  bool ended_by_new =
      false;  // that operation is the first of its thread: what the host did before is no work of that thread's
  u64 length() const { return static_cast<u64>(end - begin); }
  IdleCause largest() const {
    return static_cast<IdleCause>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  }
};
// A host that gives its next launch so soon after the last one does nothing else: eager PyTorch takes 5 to 50 us for an
// operation (its Python, its dispatcher, its autograd), more where the processor is slow or shared; batches, tokens and files
// take longer. docs/decisions/0130-pauses-between-launches.md.
inline constexpr Nanos kLaunchPause = 100'000;

struct IdleSum {
  u64 count = 0;     // gaps that have such a part
  u64 total_ns = 0;  // of the parts
};
struct IdleByCall {
  u16 call = 0;
  IdleCause cause = IdleCause::Unknown;
  IdleSum sum;
};

// One device as this process used it.
// busy + idle + unknown = span; compute + exposed_copy + exposed_collective + idle + unknown = span.
struct DeviceTimes {
  i32 device = -1;
  Nanos first = 0, last = 0;      // begin of the first, end of the last operation
  u64 busy_ns = 0;                // union of all operations
  u64 idle_ns = 0;                // sum of the gaps
  u64 unknown_ns = 0;             // gaps in which work may have run whose record is missing
  u64 compute_ns = 0;             // union of kernels that are no collectives, and of graphs that are seen as a whole
  u64 collective_ns = 0;          // union of collective kernels
  u64 copy_ns = 0;                // union of copies and memsets
  u64 exposed_collective_ns = 0;  // collectives while no other kernel ran
  u64 exposed_copy_ns = 0;        // copies while no kernel ran
  u64 kernels = 0, copies = 0, memsets = 0, graphs = 0;  // operations
  u64 gaps = 0;
  u64 unknown_gaps = 0;
  std::array<IdleSum, kIdleCauses> causes{};  // their times sum to idle_ns
  IdleSum between_launches;                   // of Host's time: in pauses of at most kLaunchPause between two launches
  IdleSum before_new_threads;                 // of Host's time: in gaps that end with the first operation of a thread
  std::vector<IdleByCall> causes_by_call;
  std::vector<IdleGap> longest;  // at most kGapsKept, longest first
  static constexpr std::size_t kGapsKept = 10000;
  u64 span_ns() const { return static_cast<u64>(last - first); }
};

struct StreamTimes {
  i32 device = -1;
  u32 context = 0, id = 0;  // as CUPTI numbers them
  u64 handle = 0;           // CUstream where it is known; 0: the NULL stream or not known
  Nanos first = 0, last = 0;
  u64 operations = 0;
  u64 busy_ns = 0;  // union; idle is span − busy
  u64 joined = 0;   // operations with a known launch; the following are over these
  QueueDepth queue;
};

struct GraphTimes {
  u64 replays = 0;     // joined replays
  u64 device_ns = 0;   // sum over replays of: first node's begin → last node's end
  u64 nodes = 0;       // node records joined
  u64 latency_ns = 0;  // sum over replays of: call begin → first node's begin
  u64 gap_ns = 0;      // sum over replays of the true launch gap of the first node
};

struct JoinCounts {
  u64 operations = 0;        // kernels, copies, memsets and graph replays that the device reported
  u64 by_key = 0;            // joined by correlation id
  u64 by_order = 0;          // joined by the order in the stream, with agreeing kernel and shape
  u64 by_order_alike = 0;    // of these: the stream's next call would have agreed as well
  u64 not_joined = 0;        // neither decided
  u64 key_mismatch = 0;      // of the others: the key led to a call of another kernel, and was not believed
  u64 calls_unanswered = 0;  // calls that should have had a device record and got none
  u64 untold = 0;            // calls that gave work to a device and got no record, also while none was collected
  u64 before_call = 0;       // joined, but starting before the call began by more than the clock error: times kept
  u64 nodes_in_doubt = 0;    // kernels of graphs that could be of several functions of their name
  u64 late = 0;              // came so late that busy and idle time were already counted
  u64 calls_forgotten = 0;   // calls that left the window before their device record came

  // Joined by order among alike calls of which some have no record: each may be its neighbour's.
  u64 in_doubt() const { return calls_unanswered + calls_forgotten ? by_order_alike : 0; }
};

struct DeviceClockFacts {
  u64 anchors = 0;
  u64 steps = 0, restarts = 0;  // jumps forward, jumps backward of the device clock between two anchors
  Nanos largest_step = 0;
  Nanos noise = 0;   // by so much operations of one stream overlap that cannot: their stamps are off; in `error`
  Nanos error = -1;  // |device time − CLOCK_MONOTONIC| is at most this, outside of steps; -1: no anchors
};

struct DeviceOverheadSum {
  u32 kind = 0;  // CUpti_ActivityOverheadKind
  u64 count = 0, total_ns = 0;
};

// What the collector said of itself: began, stopped, failed; the newest last.
struct DeviceStateChange {
  DeviceCollection state = DeviceCollection::Never;
  std::string reason;
};

// What the driver compiled, or took from its cache, of one kind.
struct DeviceJitSum {
  u32 kind = 0;       // CUpti_ActivityJitEntryType
  u32 operation = 0;  // CUpti_ActivityJitOperationType
  u64 count = 0, bytes = 0, total_ns = 0, max_ns = 0;
};

struct DeviceActivity {
  bool collected = false;   // device collection was on at some time, or device records are there
  bool incomplete = false;  // it stopped before the process ended, or was never ended properly
  std::string library;      // the sentence of the newest "on" state
  std::vector<DeviceStateChange> states;
  u32 version = 0;  // cuptiGetVersion; 0: not told
  u64 kinds = 0;    // CUpti_ActivityKind bits that were on at some time
  std::vector<DeviceTimes> devices;
  std::vector<StreamTimes> streams;
  JoinCounts join;
  DeviceClockFacts clock;
  std::array<u64, 8> lost{};  // by DeviceLossReason
  u64 unfinished() const { return lost[static_cast<std::size_t>(DeviceLossReason::Unfinished)]; }
  std::vector<DeviceOverheadSum> overhead;
  u64 own_work_ns = 0;  // what we did on the program's threads after its calls
  std::vector<DeviceJitSum> jit;
  std::vector<DeviceEnvironmentTimes> environment;  // empty: not collected, or nothing came
};

}  // namespace gputrace
