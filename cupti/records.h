// One activity record of CUPTI -> one record of ours. Pure: no state, no clock, no memory; any thread.
#pragma once

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

// What is known when a buffer is read.
struct RecordRules {
  u32 version = 0;       // cuptiGetVersion
  bool latency = false;  // queued and submitted were asked for; without, CUPTI leaves what it likes in them
  // Times outside of these cannot be: both on CUPTI's clock.
  u64 earliest = 0;
  u64 latest = ~0ull;
};

union AnyDeviceRecord {
  RecordHeader header;
  DeviceKernel kernel;
  DeviceCopy copy;
  DeviceMemset memset;
  DeviceGraph graph;
  DeviceApi api;
  DeviceOverhead overhead;
  DeviceEnvironment environment;
  DeviceJit jit;
};

enum class ParseResult : u32 {
  Record,      // `out` is filled but for header.begin, header.end and a kernel's name
  Skipped,     // a kind that is not kept
  ZeroTime,    // a start or end of 0
  Impossible,  // ends before it starts, or lies outside of the rules' times
  Unreadable,  // shorter than its kind's first version
};

// Reads `available` bytes at most. `name`: a kernel's symbol, CUPTI's memory; else nullptr.
ParseResult parse_activity(const void* record, u64 available, const RecordRules& rules, AnyDeviceRecord& out,
                           const char*& name);
// Memory of the C allocator that CUPTI made for this record and leaves to its reader to free, once; mostly nullptr.
void* details_to_free(const void* record, u64 available, u32 version);
// The kind of a record; 0 if it is too short to have one.
u32 activity_kind(const void* record, u64 available);

}  // namespace gputrace
