// Synchronous copies and memsets in a loop.
#include <fmt/format.h>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_synchronous_copies(const ProcessTrace& process) {
  u64 count = 0, between = 0, bytes = 0, call_ns = 0;
  OriginAmounts lines;
  for (const CopyGroup& group : process.copies) {
    if (group.asynchronous || group.kind == TransferKind::Memset || group.kind == TransferKind::DtoD) continue;
    count += group.count;
    between += group.between_launches;
    bytes += group.bytes;
    call_ns += group.call_ns;
    for (const auto& [origin, length] : group.time_by_origin.of) lines.add(origin, length);
  }
  if (between < kLoopTimes) return {};
  const double wall = static_cast<double>(process.end - process.begin) / 1e9;
  Finding finding{"synchronous-copies",
                  Severity::Hint,
                  "copies",
                  fmt::format("{} synchronous copies ({}), {} of them between launches, {:.0f} per second: the host "
                              "waits for each, {} in all",
                              count, human_bytes(bytes), between, per_second(count, wall),
                              human_nanos(static_cast<Nanos>(call_ns))),
                  advise(Advice::CopyBesides, process),
                  {{"count", number(count)},
                   {"between_launches", number(between)},
                   {"bytes", number(bytes)},
                   {"api_ns", number(call_ns)},
                   {"gpu_idle_ns", number(idle_of(process, IdleCause::Copy, is_blocking_call).total_ns)},
                   {"per_second", per_second(count, wall)}}};
  if (!costs(finding, process, WhatIf::Copies)) return {};
  finding.site = site_of_most(process, lines);
  return finding;
}

bool is_blocking_memset(const std::string& call) { return is_memset_call(call) && !is_async_call(call); }

std::optional<Finding> judge_synchronous_memsets(const ProcessTrace& process) {
  u64 count = 0, between = 0, bytes = 0, call_ns = 0;
  for (const CopyGroup& group : process.copies) {
    if (group.asynchronous || group.kind != TransferKind::Memset) continue;
    count += group.count, between += group.between_launches, bytes += group.bytes, call_ns += group.call_ns;
  }
  if (between < kLoopTimes) return {};
  Finding finding{
      "synchronous-memsets",
      Severity::Hint,
      "copies",
      fmt::format("{} synchronous memsets ({}), {} of them between launches, {} in the calls", human_count(count),
                  human_bytes(bytes), human_count(between), human_nanos(static_cast<Nanos>(call_ns))),
      "use cuMemsetD8Async (cudaMemsetAsync) on the stream of the next kernel",
      {{"count", number(count)},
       {"between_launches", number(between)},
       {"bytes", number(bytes)},
       {"api_ns", number(call_ns)},
       {"gpu_idle_ns", number(idle_of(process, IdleCause::Copy, is_blocking_memset).total_ns)}}};
  if (!costs(finding, process, WhatIf::Copies)) return {};
  return finding;
}

void find_synchronous_copies(const LoadedRun& run, Findings& found) {
  add_worst(run, found, judge_synchronous_copies);
  add_worst(run, found, judge_synchronous_memsets);
}

}  // namespace

extern constexpr FindingRule synchronous_copies_rule = {
    .findings = {{"synchronous-copies", "synchronous copies in a loop that leave the device idle"},
                 {"synchronous-memsets", "synchronous memsets in a loop that leave the device idle"}},
    .needs = {Need::Calls},
    .find = find_synchronous_copies,
    .of_the_loop = true,
};

}  // namespace gputrace
