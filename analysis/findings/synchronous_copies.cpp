// Synchronous copies in a loop.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

void find_synchronous_copies(const LoadedRun& run, Findings& found) {
  u64 count = 0, between = 0, bytes = 0, call_ns = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) {
      if (group.asynchronous || group.kind == TransferKind::Memset || group.kind == TransferKind::DtoD) continue;
      count += group.count;
      between += group.between_launches;
      bytes += group.bytes;
      call_ns += group.call_ns;
    }
  }
  if (between < kLoopTimes) return;
  const double wall = wall_seconds(run);
  const IdleShare idle = idle_of(run, IdleCause::Copy, is_blocking_call);
  const bool costly = static_cast<double>(std::max(call_ns, idle.total_ns)) >= kCostlyShare * wall * 1e9;
  Finding finding{"synchronous-copies",
                  costly ? Severity::Warning : Severity::Hint,
                  "copies",
                  fmt::format("{} synchronous copies ({}), {} of them between launches, {:.0f} per second: the host "
                              "waits for each, {} in all",
                              count, human_bytes(bytes), between, per_second(count, wall),
                              human_nanos(static_cast<Nanos>(call_ns))),
                  "copy with cuMemcpyAsync (cudaMemcpyAsync, non_blocking=True) from pinned memory, and wait once",
                  {{"count", number(count)},
                   {"between_launches", number(between)},
                   {"bytes", number(bytes)},
                   {"api_ns", number(call_ns)},
                   {"per_second", per_second(count, wall)}}};
  finding.gain_ns = idle.total_ns;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule synchronous_copies_rule = {
    .findings = {{"synchronous-copies", "synchronous copies in a loop"}},
    .needs = {Need::Calls},
    .find = find_synchronous_copies,
};

}  // namespace gputrace
