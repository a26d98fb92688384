// Synchronous memsets in a loop.
#include <fmt/format.h>

#include "analysis/findings/device_idle.h"
#include "analysis/findings/rules.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

void find_synchronous_memsets(const LoadedRun& run, Findings& found) {
  u64 count = 0, between = 0, bytes = 0, call_ns = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) {
      if (group.asynchronous || group.kind != TransferKind::Memset) continue;
      count += group.count, between += group.between_launches, bytes += group.bytes, call_ns += group.call_ns;
    }
  }
  if (between < kLoopTimes) return;
  const IdleShare idle = idle_of(run, IdleCause::Copy,
                                 [](const std::string& call) { return is_memset_call(call) && !is_async_call(call); });
  const u64 cost = std::max(call_ns, idle.total_ns);
  const bool costly = static_cast<double>(cost) >= kCostlyShare * wall_seconds(run) * 1e9;
  Finding finding{
      "synchronous-memsets",
      costly ? Severity::Warning : Severity::Hint,
      "copies",
      fmt::format("{} synchronous memsets ({}), {} of them between launches, {} in the calls", human_count(count),
                  human_bytes(bytes), human_count(between), human_nanos(static_cast<Nanos>(call_ns))),
      "use cuMemsetD8Async (cudaMemsetAsync) on the stream of the next kernel",
      {{"count", number(count)},
       {"between_launches", number(between)},
       {"bytes", number(bytes)},
       {"api_ns", number(call_ns)}}};
  finding.gain_ns = idle.total_ns;
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule synchronous_memsets_rule = {
    .findings = {{"synchronous-memsets", "synchronous memsets in a loop"}},
    .needs = {Need::Calls},
    .find = find_synchronous_memsets,
};

}  // namespace gputrace
