// Sees a trace while it is read, and what a Timeline makes of it: for exports and the page.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/gaps/operations.h"
#include "analysis/read/record_stream.h"
#include "analysis/timeline/device_shapes.h"

namespace gputrace {

// What the facts shall hold besides.
enum class Wanted : u8 {
  Operations,  // sums by source line, memory and devices, which are there anyway
  Sums,        // also times of calls, kernels, copies, graphs and ranges, loops of launches, the program's steps
  All,         // all that reports are made of, as without a witness
};

class Witness {
 public:
  virtual ~Witness() = default;

  // Asked before the first record; the same at all times.
  virtual Wanted wants() const { return Wanted::Operations; }
  // Records, in the order of RecordStream, on the thread that reads; they live during the call only.
  virtual void recorded(const RecordStream::Span& span) { static_cast<void>(span); }
  // On the timeline's thread. In the order of starts, but for what came too late for that. `call`: nullptr where none was joined. `activity`: what
  // is known of devices and streams so far. All live during the call only.
  virtual void ran(const DeviceOperation& operation, const DeviceShape& shape, const HostOperation* call,
                   const DeviceActivity& activity) = 0;
  // A device did nothing, for certain; in the order of their ends, device by device. On the timeline's thread.
  virtual void idled(const IdleGap& gap) = 0;
  // The trace was read; what of it lies where. Once, after all else, on the thread that reads.
  virtual void read(const RecordStream& stream) { static_cast<void>(stream); }
};

}  // namespace gputrace
