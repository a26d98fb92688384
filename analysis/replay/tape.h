// A piece of a run as it was recorded: calls of the host's threads, operations, and what waited for what. Times are
// CLOCK_MONOTONIC ns.
#pragma once

#include <vector>

#include "analysis/gaps/host_log.h"
#include "analysis/gaps/operations.h"

namespace gputrace {

// An outermost call, a run of queries, or a piece of a library's call, as HostLog has them.
struct TapeCall {
  Nanos begin = 0, end = 0;
  u32 thread = kNone;
  HostLog::Kind kind = HostLog::Kind::Other;
};

// A wait or a query that found everything done, until the call around it is known.
struct TapeWait {
  Nanos begin = 0, end = 0;
  u32 thread = kNone;
  u32 waits = 0, waits_count = 0;  // in Tape::waits
  bool needless = false;
};

struct TapeOperation {
  Nanos begin = 0, end = 0;     // of the driver's call; 0, 0: not on this tape
  Nanos start = 0, finish = 0;  // on the device; 0, 0: not told
  u64 bytes = 0;
  u32 thread = kNone;
  u32 stream = kNone, device = kNone;
  u32 target = kNone;  // kernel, group of copies or graph, as HostOperation has it
  u32 waits = 0;       // in Tape::waits
  u8 waits_count = 0;
  OperationKind kind = OperationKind::Kernel;
};

struct Tape {
  u32 first = 0;                // sequence number of operations[0]
  std::vector<TapeCall> calls;  // of each thread in order
  std::vector<TapeWait> waited;
  std::vector<TapeOperation> operations;  // by sequence number
  std::vector<u32> waits;                 // sequence numbers of operations that must end before; kNone: on no tape
};

}  // namespace gputrace
