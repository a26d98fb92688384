// Allocations in a loop, but not from pools.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// Whether most of the freeing is PyTorch's, which keeps what it has unless it is told to give it back.
bool empties_cache(const ProcessTrace& process) {
  const SourceFrames& frames = process.lines.frames;
  u64 all = 0, emptied = 0;
  for (const auto& [origin, length] : process.allocation_loop.freeing_by_origin.of) {
    all += length;
    for (u32 frame = process.lines.origins[origin].frame; frame != 0 && frame < frames.size();
         frame = frames[frame].parent) {
      if (frames[frame].function != "empty_cache" || !is_library_file(frames[frame])) continue;
      emptied += length;
      break;
    }
  }
  return 2 * emptied > all;
}

std::optional<Finding> judge_allocation_in_loop(const ProcessTrace& process) {
  const AllocationLoop& loop = process.allocation_loop;
  if (loop.between_launches < kLoopTimes) return {};
  u64 spent = 0;
  for (const CallFacts& call : process.calls) {
    if (call.level == "driver" &&
        (call.name.compare(0, 8, "cuMemAll") == 0 || call.name.compare(0, 9, "cuMemFree") == 0))
      spent += call.self_ns;
  }
  const double span = static_cast<double>(loop.last - loop.first) / 1e9;
  Finding finding{"allocation-in-loop",
                  Severity::Hint,
                  "memory",
                  fmt::format("{} allocates in its loop: {} allocations with launches between them, {:.0f} per "
                              "second, {} in allocating and freeing",
                              name_of(process), loop.between_launches, per_second(loop.between_launches, span),
                              human_nanos(static_cast<Nanos>(spent))),
                  "allocate once before the loop, or use stream-ordered pools (cuMemAllocAsync, cudaMallocAsync)",
                  {{"between_launches", number(loop.between_launches)},
                   {"per_second", per_second(loop.between_launches, span)},
                   {"api_ns", number(spent)},
                   {"gpu_idle_ns", number(idle_of(process, IdleCause::Allocation).total_ns)}}};
  if (!costs(finding, process, WhatIf::Allocations)) return {};
  const bool emptied = empties_cache(process);
  finding.site = site_of_most(process, emptied ? loop.freeing_by_origin : loop.time_by_origin);
  if (emptied)
    finding.fix = "do not call torch.cuda.empty_cache() in the loop: PyTorch gives freed memory out again by itself";
  return finding;
}

void find_allocation_in_loop(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_allocation_in_loop); }

}  // namespace

extern constexpr FindingRule allocation_in_loop_rule = {
    .findings = {{"allocation-in-loop", "allocations in a loop, but not from pools, that leave the device idle"}},
    .needs = {Need::Calls},
    .find = find_allocation_in_loop,
    .of_the_loop = true,
};

}  // namespace gputrace
