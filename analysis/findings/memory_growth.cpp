// Memory that a loop takes and does not give back.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLeastBytes = 16u << 20;
constexpr double kLeastShare = 0.1;  // of what is in use at the end of the loop
constexpr unsigned kParts = 6;       // of the loop's time: the lowest level of each is above that of the one before

// The lowest level of each part; what was in use at its begin counts.
std::array<u64, kParts> lowest_levels(const DeviceMemory& memory, Nanos first, Nanos last) {
  std::array<u64, kParts> lowest;
  lowest.fill(~u64{0});
  const auto part_of = [&](Nanos at) {
    return std::min<u64>(kParts - 1, static_cast<u64>(at - first) * kParts / static_cast<u64>(last - first));
  };
  u64 level = 0;
  u64 part = 0;
  lowest[0] = ~u64{0};
  for (const MemorySample& sample : memory.samples) {
    if (sample.at > last) break;
    const u64 here = sample.at <= first ? 0 : part_of(sample.at);
    for (; part < here; ++part) lowest[part + 1] = level;
    level = sample.bytes;
    if (sample.at <= first)
      lowest[0] = level;
    else
      lowest[here] = std::min(lowest[here], level);
  }
  for (; part + 1 < kParts; ++part) lowest[part + 1] = level;
  return lowest;
}

void judge_memory(const ProcessTrace& process, const DeviceMemory& memory, Findings& found) {
  const AllocationLoop& loop = process.allocation_loop;
  if (loop.last <= loop.first) return;
  const auto lowest = lowest_levels(memory, loop.first, loop.last);
  for (unsigned i = 1; i < kParts; ++i) {
    if (lowest[i] <= lowest[i - 1]) return;
  }
  const u64 grown = lowest[kParts - 1] - lowest[0];
  if (grown < kLeastBytes || static_cast<double>(grown) < kLeastShare * static_cast<double>(lowest[kParts - 1])) return;
  const double seconds = static_cast<double>(loop.last - loop.first) / 1e9;
  Finding finding{
      "memory-growth",
      Severity::Warning,
      "memory",
      fmt::format("{}: what is in use of device {}'s memory grows all through the loop, by {} in {}, and is "
                  "not given back",
                  name_of(process), memory.device, human_bytes(grown), human_nanos(loop.last - loop.first)),
      "keep no results of earlier steps on the device (detach, .item()), free what the loop allocates",
      {{"device", static_cast<i64>(memory.device)},
       {"grown_bytes", number(grown)},
       {"bytes_per_second", static_cast<double>(grown) / seconds},
       {"live_at_end_bytes", number(memory.live_bytes)},
       {"pid", static_cast<i64>(process.who.pid)}}};
  found.push_back(std::move(finding));
}

void find_memory_growth(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    if (process.allocation_loop.between_launches < kLoopTimes || !process.ledger_complete) continue;
    for (const DeviceMemory& memory : process.device_memory) judge_memory(process, memory, found);
  }
}

}  // namespace

extern constexpr FindingRule memory_growth_rule = {
    .findings = {{"memory-growth", "memory that a loop takes and does not give back"}},
    .needs = {Need::Calls},
    .find = find_memory_growth,
};

}  // namespace gputrace
