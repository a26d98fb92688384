// The two sides that the timeline brings together: what the host asked for, and what a device did.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/gaps/overhead_log.h"
#include "base/types.h"

namespace gputrace {

// Functions of the host and waits for values in memory are operations of a stream that no device reports.
enum class OperationKind : u8 { Kernel, Copy, Memset, Graph, HostFunction, MemoryValue };
inline bool is_reported(OperationKind kind) { return kind < OperationKind::HostFunction; }

// A call that gives work to a device: a plain launch, a copy, a memset, a graph launch. Lives in LaunchWindow, where
// millions wait: one cache line each.
struct HostOperation {
  Nanos begin = 0, end = 0;    // of the call
  Nanos device_end = 0;        // largest end of its device operations; 0: none yet
  u64 bytes = 0;               // copies and memsets; of graphs the number of the version (GraphTable::Version)
  u32 target = kNone;          // index in ProcessTrace::kernels, copies or graphs
  u32 thread = kNone;          // index in TraceReader::threads()
  u32 stream = kNone;          // dense number of the host's stream
  u32 next_in_stream = kNone;  // sequence number of the next operation given to that stream
  u32 next_in_thread = kNone;  // ... and of the next one of that thread
  u32 waits = kNone;           // first of the operations that must end before it starts; kNone: none
  u16 call = 0;                // id of the call
  OperationKind kind = OperationKind::Kernel;
  u8 waits_count = 0;
  u32 stack : 23 = 0;            // number of the CallOrigin from which it was made
  u32 counted : 1 = true;        // in the report's window of time
  u32 batch_member : 1 = false;  // not the first record of its call
  u32 answered : 1 = false;      // a device operation was joined
  u32 collective : 1 = false;    // made by a collective of a communication library
  u32 by_order : 1 = false;      // joined by the order in the stream, not by key
  u32 expected : 1 = true;       // a device record must come
  u32 on_device : 1 = true;      // a device works for it, whether or not its record was collected
  u32 part : 1 = false;          // not the first of the memsets that one call of the program takes
  u32 programmatic : 1 = false;  // may start before what is before it in its stream has ended
};
static_assert(sizeof(HostOperation) == 64 && kMostOrigins < 1u << 23);

// One operation on a device, its times on the host's clock.
struct DeviceOperation {
  Nanos start = 0, end = 0;
  u64 detail = 0;  // copies, memsets: bytes; kernels: CUPTI's graph node id (0: none)
  u32 correlation = 0;
  u32 stream = kNone;  // index in DeviceActivity::streams
  u32 shape = kNone;   // index in DeviceShapes
  u32 device = kNone;  // index in DeviceActivity::devices
  u32 graph = 0;       // CUPTI id of the executable graph; 0: none
  OperationKind kind = OperationKind::Kernel;
  bool collective = false;
  u16 reserved = 0;
  // Others: `submitted` is CUPTI's graph node id.
  Nanos queued = 0, submitted = 0;  // kernels: the latency stamps; 0: not told

  u64 node() const { return kind == OperationKind::Kernel ? detail : static_cast<u64>(submitted); }
};

static_assert(sizeof(DeviceOperation) == 64);

// What stands in front of an operation besides operations that devices report.
enum class Behind : u8 { Operations, HostFunction, MemoryValue };
struct Waited {
  Nanos until = 0;  // latest end of what it had to wait for, as far as it is reported; 0: nothing known
  Behind behind = Behind::Operations;
  u32 device = kNone;  // of the operation that ended then; kNone: not told
};

// A gap with all that its cause can be told from. Pointers live during the call only.
struct GapContext {
  IdleGap gap;
  const HostOperation*
      previous_call;  // of the operation that ended last before the gap; nullptr: not joined, or not remembered
  const DeviceOperation& next;     // the operation that ended the gap
  const HostOperation* next_call;  // nullptr: not joined
  Waited waited;                   // what `next` had to wait for: its stream, events
  u32 queue_depth = 0;  // operations of its stream that had been launched and had not started when `next` was launched
  Nanos clock_error = 0;
  const OverheadLog* overhead = nullptr;  // nullptr: none was reported
};

}  // namespace gputrace
