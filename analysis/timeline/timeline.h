// The timeline of one process: device records on the host's clock, joined to the calls that caused them, put in order,
// and folded into DeviceActivity, into the times of kernels, copies, launches and graphs, and into gaps with causes.
// One streaming pass in the order of RecordStream; one instance per trace; one thread.
//
//   host calls ──▶ LaunchWindow ─────────────┐ (sequence numbers; what each operation waits for)
//                                            ▼
//   device records ──▶ a batch until the clock is known ──▶ ReorderWindow, by start ──▶ join ──▶ DeviceSweep ──▶ facts
//
//   · Device records come late, by another thread's ring, in any order. They are converted when a reading of the clock
//     that is newer than them is there; they leave the reorder window when it is full, oldest start first.
//   · Join: by key (DeviceApi in the thread's call → correlation id), else by order in the stream with agreeing kernel
//     and shape, else not; each is counted.
//   · Memory: LaunchWindow 2 M operations, ReorderWindow 1 M operations, HostLog 4 M calls at most; what falls out of
//     them is counted.
#pragma once

#include <memory>
#include <vector>

#include "analysis/facts.h"
#include "analysis/timeline/host_log.h"
#include "analysis/timeline/operations.h"
#include "trace/reader.h"

namespace gputrace {

// Sees every operation once, in the order of their starts, after the join. For reports that need more than the facts.
class OperationVisitor {
 public:
  virtual ~OperationVisitor() = default;
  // `call` is nullptr where the operation was not joined; `gap_ns` is its true launch gap (0 for graph nodes but the
  // first).
  virtual void on_operation(const DeviceOperation& operation, const HostOperation* call, u64 gap_ns) = 0;
};

}  // namespace gputrace
