// Sees what a Timeline makes, while it is made: for exports. Called on the timeline's thread.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/gaps/operations.h"
#include "analysis/read/record_stream.h"
#include "analysis/timeline/device_shapes.h"

namespace gputrace {

class Witness {
 public:
  virtual ~Witness() = default;

  // In the order of starts, but for what came too late for that. `call`: nullptr where none was joined. `activity`: what
  // is known of devices and streams so far. All live during the call only.
  virtual void ran(const DeviceOperation& operation, const DeviceShape& shape, const HostOperation* call,
                   const DeviceActivity& activity) = 0;
  // A device did nothing, for certain; in the order of their ends, device by device.
  virtual void idled(const IdleGap& gap) = 0;
  // Whether the facts shall hold what else reports are made of: times of calls, kernels, copies, graphs and ranges, loops of
  // launches, the program's steps. Sums by source line, memory and devices are there anyway, gains never. Asked before the first record.
  virtual bool wants_sums() const { return false; }
  // The trace was read; what of it lies where. Once, after all else, on the thread that reads.
  virtual void read(const RecordStream& stream) { static_cast<void>(stream); }
};

}  // namespace gputrace
