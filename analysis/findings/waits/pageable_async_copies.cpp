// Asynchronous copies that pageable memory makes synchronous.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kPageableBytes = 1u << 20;

std::optional<Finding> judge_pageable_async_copies(const ProcessTrace& process) {
  u64 count = 0, bytes = 0, call_ns = 0;
  OriginAmounts lines;
  for (const CopyGroup& group : process.copies) {
    if (!group.asynchronous || group.memory != HostMemory::Pageable) continue;
    count += group.count;
    bytes += group.bytes;
    call_ns += group.call_ns;
    for (const auto& [origin, length] : group.time_by_origin.of) lines.add(origin, length);
  }
  if (count == 0 || (count < kLoopTimes && bytes < kPageableBytes)) return {};
  Finding finding{"pageable-async-copies",
                  Severity::Hint,
                  "copies",
                  fmt::format("{} asynchronous copies ({}) are from or to pageable host memory: the driver stages "
                              "them, and they are not asynchronous",
                              count, human_bytes(bytes)),
                  advise(Advice::PinMemory, process),
                  {{"count", number(count)},
                   {"bytes", number(bytes)},
                   {"api_ns", number(call_ns)},
                   {"gpu_idle_ns", number(idle_of(process, IdleCause::Copy, is_async_call).total_ns)}}};
  if (!costs(finding, process, WhatIf::Copies)) return {};
  finding.site = site_of_most(process, lines);
  return finding;
}

void find_pageable_async_copies(const LoadedRun& run, Findings& found) {
  add_worst(run, found, judge_pageable_async_copies);
}

}  // namespace

extern constexpr FindingRule pageable_async_copies_rule = {
    .findings = {{"pageable-async-copies",
                  "asynchronous copies that pageable memory makes synchronous, where that leaves the device idle"}},
    .needs = {Need::Calls},
    .find = find_pageable_async_copies,
    .of_the_loop = true,
};

}  // namespace gputrace
