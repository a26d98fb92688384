// Calls of a traced program as the unit tests of reports write them.
#pragma once

#include "analysis/reports/list.h"
#include "tests/unit/trace_builder.h"

namespace gputrace::test {

inline void launch(TraceBuilder& trace, TraceBuilder::Thread thread, u64 function, Nanos begin, Nanos end,
                   u32 flags = 0, u16 result = 0) {
  trace.add<KernelLaunch>(
      thread, "cuLaunchKernel_ptsz", begin, end,
      [&](auto& r) {
        r.function = function, r.context = 0xc0, r.flags = flags;
        r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1, r.dynamic_shared_bytes = 512;
      },
      result);
}

inline void allocate(TraceBuilder& trace, TraceBuilder::Thread thread, AllocKind kind, u64 address, u64 bytes,
                     Nanos begin, Nanos end) {
  trace.add<Alloc>(thread, "cuMemAlloc_v2", begin, end, [&](auto& r) {
    r.kind = static_cast<u32>(kind), r.address = address, r.bytes = bytes, r.context = 0xc0, r.device = -1;
  });
}
inline void give_back(TraceBuilder& trace, TraceBuilder::Thread thread, AllocKind kind, u64 address, Nanos begin,
                      Nanos end) {
  trace.add<Free>(thread, "cuMemFree_v2", begin, end,
                  [&](auto& r) { r.kind = static_cast<u32>(kind), r.address = address; });
}

inline void copy(TraceBuilder& trace, TraceBuilder::Thread thread, CopyKind kind, u64 destination, u64 source,
                 u64 bytes, Nanos at, bool async) {
  trace.add<Copy>(thread, async ? "cuMemcpyAsync" : "cuMemcpy", at, at + 100, [&](auto& r) {
    r.kind = static_cast<u8>(kind), r.destination = destination, r.source = source, r.bytes = bytes,
    r.asynchronous = async, r.context = 0xc0;
  });
}

inline Value metric(const LoadedRun& run, const char* name) {
  const Table table = overview_report(run);
  return cell(table, row_with(table, "metric", text_value(name)), "value");
}

}  // namespace gputrace::test
