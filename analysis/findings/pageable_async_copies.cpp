// Asynchronous copies that pageable memory makes synchronous.
#include <fmt/format.h>

#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {

namespace {

constexpr u64 kPageableBytes = 1u << 20;  // less in all is worth a hint, not a warning

void find_pageable_async_copies(const LoadedRun& run, Findings& found) {
  u64 count = 0, bytes = 0, call_ns = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) {
      if (!group.asynchronous || group.memory != HostMemory::Pageable) continue;
      count += group.count;
      bytes += group.bytes;
      call_ns += group.call_ns;
    }
  }
  if (count < kLoopTimes && bytes < kPageableBytes) return;
  if (count == 0) return;
  Finding finding{"pageable-async-copies",
                  bytes >= kPageableBytes ? Severity::Warning : Severity::Hint,
                  "copies",
                  fmt::format("{} asynchronous copies ({}) are from or to pageable host memory: the driver stages "
                              "them, and they are not asynchronous",
                              count, human_bytes(bytes)),
                  "use pinned memory (cuMemHostAlloc, cudaHostAlloc, pin_memory=True)",
                  {{"count", number(count)}, {"bytes", number(bytes)}, {"api_ns", number(call_ns)}}};
  finding.gain_ns = idle_of(run, IdleCause::Copy, is_async_call).total_ns;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule pageable_async_copies_rule = {
    .findings = {{"pageable-async-copies", "asynchronous copies that pageable memory makes synchronous"}},
    .needs = {Need::Calls},
    .find = find_pageable_async_copies,
};

}  // namespace gputrace
