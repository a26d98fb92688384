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
  u32 waits = 0, waits_count = 0;  // as TapeOperation has them
  bool needless = false;
};

struct TapeCopy {
  u64 bytes = 0;
  u32 group = kNone;  // of copies, as HostOperation::target has it
};

// Half a million of a process lie in memory at once.
struct TapeOperation {
  Nanos begin = 0, end = 0;     // of the driver's call; 0, 0: not on this tape
  Nanos start = 0, finish = 0;  // on the device; 0, 0: not told
  u32 target = kNone;  // kernel, group of memsets or graph, as HostOperation has it; of copies the number of a TapeCopy
  u32 waits = 0;       // number of the first one in Tape::waits
  u32 thread : 24 = kNoThread;
  u32 waits_count : 8 = 0;
  u32 stream : 28 = kNoStream;
  OperationKind kind : 4 = OperationKind::Kernel;

  // More threads or streams than that no process makes: those are taken for one.
  static constexpr u32 kNoThread = (1u << 24) - 1, kNoStream = (1u << 28) - 1;
};
static_assert(sizeof(TapeOperation) == 48);

// Numbers of waits and copies count on from the tape before: tapes that follow each other can be read as one.
struct Tape {
  static constexpr u32 kPiece = 32u << 10;  // operations at most

  u32 first = 0;                       // sequence number of the first operation
  u32 first_wait = 0, first_copy = 0;  // numbers of waits[0] and copies[0]
  std::vector<TapeCall> calls;         // of each thread in order
  std::vector<TapeWait> waited;
  std::vector<TapeOperation> operations;  // by sequence number, from begin() on
  std::vector<TapeCopy> copies;
  std::vector<u32> waits;  // sequence numbers of operations that must end before; kNone: on no tape

  u32 begin() const { return first - first % kPiece; }
};

}  // namespace gputrace
