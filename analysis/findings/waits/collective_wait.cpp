// Ranks that wait for one another: collectives in which most wait for the last one to arrive (needs the traces of all ranks of a
// communicator, and their calls), and the rank that is behind in each step.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/run/collective_match.h"
#include "analysis/steps/rank_steps.h"
#include "analysis/words/human.h"

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

constexpr double kFarBehind = 0.2;  // of a step

std::string fix_of(StepCategory most) {
  switch (most) {
    case StepCategory::Host:
    case StepCategory::Input:
    case StepCategory::Launch:
      return "look at the line: what it does that the other ranks do not, or its processors are busy with something "
             "else";
    case StepCategory::Compute16:
    case StepCategory::Compute32:
    case StepCategory::ComputeOther:
      return "divide the work evenly (lengths, batches, layers), or look at that device: its clock, its power, who "
             "else "
             "uses it";
    default:
      return "look at what it does that the other ranks do not";
  }
}

void find_straggler(const LoadedRun& run, Findings& found) {
  const std::vector<RankSteps> ranks = rank_steps(run);
  const RankSteps* const last = straggler_of(ranks);
  if (!last) return;
  u64 waited = 0;  // by those who wait, in collectives, beyond what the straggler spends there
  u64 alone = 0;   // what a step of the slowest of them takes without that
  for (const RankSteps& rank : ranks) {
    const u64 more = rank.part(StepCategory::Collective), least = last->part(StepCategory::Collective);
    waited += more > least ? more - least : 0;
    if (&rank != last) alone = std::max(alone, rank.alone_ns);
  }
  const u64 each = waited / (ranks.size() - 1);  // of a step
  const u64 gain = std::min(each, last->alone_ns > alone ? last->alone_ns - alone : 0);
  if (static_cast<double>(gain) < 0.05 * static_cast<double>(last->steps.mean_ns)) return;  // nobody waits for it
  const ProcessTrace& process = run.processes[last->process];
  const auto words = [](u64 length) { return human_nanos(static_cast<Nanos>(length)); };
  Finding finding;
  finding.id = "straggler";
  finding.severity = last->score >= kFarBehind ? Severity::Problem : Severity::Warning;
  finding.section = "ranks";
  finding.text = fmt::format("the other {} for rank {} in collectives, {} of each step of {}; it spends {} more on {}",
                             ranks.size() == 2 ? "rank waits" : "ranks wait", last->rank, words(each),
                             words(last->steps.mean_ns), words(last->more_ns), step_category_name(last->most));
  if (gain < each / 10 * 9) finding.text += "; the others' own work takes up to " + words(alone);
  finding.fix = fix_of(last->most);
  finding.gain_ns = gain * last->steps.counted;
  finding.gain_ns_per_step = gain;
  if (last->most == StepCategory::Host || last->most == StepCategory::Input)
    finding.site = site_of_idle(process.loop ? *process.loop : process, IdleCause::Host).site;
  finding.evidence = {{"pid", static_cast<i64>(process.who.pid)},
                      {"rank", last->rank},
                      {"ranks", number(static_cast<u64>(ranks.size()))},
                      {"score", last->score},
                      {"steps", number(last->steps.counted)},
                      {"waited_ns", number(waited * last->steps.counted)},
                      {"more_on", std::string(step_category_name(last->most))},
                      {"more_ns", number(last->more_ns * last->steps.counted)}};
  found.push_back(std::move(finding));
}

void find_waits(const LoadedRun& run, Findings& found) {
  find_straggler(run, found);
  find_collective_wait(run, found);
}

}  // namespace

extern constexpr FindingRule collective_wait_rule = {
    .findings =
        {{"collective-wait",
          "collectives in which ranks mostly wait for the last one; needs the traces of all of them, with libs"},
         {"straggler", "a rank that the others wait for in collectives, and what it does meanwhile"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_waits,
};

}  // namespace gputrace
