// Collectives in which ranks mostly wait for the last one to arrive. Needs the traces of all ranks of a communicator.
#include <cmath>
#include <map>

#include "analysis/findings/rules.h"
#include "analysis/run/collective_match.h"

namespace gputrace {
namespace {

constexpr double kWaitShare = 0.2;       // of the time in matched collectives
constexpr u64 kWorthSaying = 1'000'000;  // ns of waiting, all ranks together

struct RankSum {
  u64 wait_ns = 0, total_ns = 0;
};

void find_collective_wait(const LoadedRun& run, Findings& found) {
  const CollectiveTimes times = match_collectives(run);
  std::map<u64, std::map<i32, RankSum>> communicators;  // by id, by rank
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const LibraryFacts& library = run.processes[p].library;
    for (u32 i = 0; i < library.rows.size(); ++i) {
      const CollectiveTime& time = times.of(p, i);
      if (time.matched == 0) continue;
      const CommunicatorFacts& facts = library.communicators[library.rows[i].communicator];
      RankSum& sum = communicators[facts.id][facts.rank];
      sum.wait_ns += time.wait_ns;
      sum.total_ns += time.wait_ns + time.transfer_ns;
    }
  }
  for (const auto& [id, ranks] : communicators) {
    u64 wait = 0, total = 0;
    i32 last = -1;  // waits least: the others wait for it
    for (const auto& [rank, sum] : ranks) {
      wait += sum.wait_ns;
      total += sum.total_ns;
      if (last < 0 || sum.wait_ns < ranks.at(last).wait_ns) last = rank;
    }
    const double share = total ? static_cast<double>(wait) / static_cast<double>(total) : 0;
    if (share < kWaitShare || wait < kWorthSaying) continue;
    Finding finding;
    finding.id = "collective-wait";
    finding.severity = Severity::Warning;
    finding.section = "comm";
    finding.text = std::to_string(std::lround(share * 100)) + " % of the time in collectives of " +
                   std::to_string(ranks.size()) + " ranks is waiting for the last rank to arrive, most often rank " +
                   std::to_string(last);
    finding.fix = "even out the work before the collective: look at what rank " + std::to_string(last) +
                  " does that the others do not";
    finding.evidence = {{"wait_ns", number(wait)},
                        {"total_ns", number(total)},
                        {"last_rank", static_cast<i64>(last)},
                        {"ranks", number(static_cast<u64>(ranks.size()))}};
    found.push_back(std::move(finding));
  }
}

}  // namespace

extern constexpr FindingRule collective_wait_rule = {
    .findings = {{"collective-wait",
                  "collectives in which ranks mostly wait for the last one; needs the traces of all of them"}},
    .needs = {Need::Calls, Need::Device, Need::Libraries},
    .find = find_collective_wait,
};

}  // namespace gputrace
