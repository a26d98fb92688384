#include "analysis/steps/rank_steps.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

namespace gputrace {
namespace {

constexpr double kBehind = 0.05;
constexpr u64 kFewestSteps = 4;

// The lower of the middle ones: of two ranks the one that is ahead.
template <typename Amount>
u64 median_of(const std::vector<RankSteps>& ranks, Amount&& amount) {
  std::vector<u64> all;
  all.reserve(ranks.size());
  for (const RankSteps& rank : ranks) all.push_back(amount(rank));
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// What the host does in a mean step but to launch, to wait for its input and to compile. What a device's collective hides of it counts where
// it is known for how long the host was busy.
u64 host_of(const RankSteps& rank, bool busy_is_known) {
  if (!busy_is_known) return rank.part(StepCategory::Host);
  const u64 others =
      rank.part(StepCategory::Input) + rank.part(StepCategory::Launch) + rank.part(StepCategory::Compilation);
  return rank.steps.mean_host_busy_ns - std::min(rank.steps.mean_host_busy_ns, others);
}

void compare(std::vector<RankSteps>& ranks) {
  const bool busy_is_known =
      std::all_of(ranks.begin(), ranks.end(), [](const RankSteps& rank) { return rank.steps.mean_host_busy_ns != 0; });
  const auto spent = [&](const RankSteps& rank, StepCategory category) {
    return category == StepCategory::Host ? host_of(rank, busy_is_known) : rank.part(category);
  };
  u64 transfer = std::numeric_limits<u64>::max();
  for (const RankSteps& rank : ranks) transfer = std::min(transfer, rank.part(StepCategory::Collective));
  for (RankSteps& rank : ranks) rank.alone_ns = std::max(rank.alone_ns + transfer, rank.steps.mean_host_busy_ns);
  const u64 usual = median_of(ranks, [](const RankSteps& rank) { return rank.alone_ns; });
  for (RankSteps& rank : ranks) {
    rank.score =
        (static_cast<double>(rank.alone_ns) - static_cast<double>(usual)) / static_cast<double>(rank.steps.mean_ns);
    for (unsigned i = 0; i < kStepCategories; ++i) {
      const auto category = static_cast<StepCategory>(i);
      if (category == StepCategory::Collective) continue;
      const u64 own = spent(rank, category);
      const u64 others = median_of(ranks, [&](const RankSteps& other) { return spent(other, category); });
      if (own > others && own - others > rank.more_ns) rank.more_ns = own - others, rank.most = category;
    }
  }
}

// Of ranks that a launcher started anew: those of the newest start in which several came to steps.
void keep_last_start(const LoadedRun& run, std::vector<RankSteps>& ranks) {
  const auto start_of = [&](const RankSteps& rank) { return run.processes[rank.process].who.restart; };
  std::map<u32, u64> starts;
  for (const RankSteps& rank : ranks) ++starts[start_of(rank)];
  const auto newest = std::find_if(starts.rbegin(), starts.rend(), [](const auto& start) { return start.second > 1; });
  if (newest == starts.rend()) return;
  std::erase_if(ranks, [&](const RankSteps& rank) { return start_of(rank) != newest->first; });
}

}  // namespace

std::vector<RankSteps> rank_steps(const LoadedRun& run) {
  std::vector<RankSteps> ranks;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    RankSteps rank;
    rank.steps = statistics_of(process.steps);
    if (process.who.rank.empty() || rank.steps.divided < kFewestSteps || rank.steps.mean_ns == 0) continue;
    rank.process = p;
    rank.rank = std::atoll(process.who.rank.c_str());
    u64 all = 0;
    for (const u64 part : rank.steps.mean_parts) all += part;
    rank.alone_ns = all - rank.part(StepCategory::Collective);  // what is added is known of all together
    ranks.push_back(rank);
  }
  keep_last_start(run, ranks);
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto twice =
      std::adjacent_find(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank == b.rank; });
  if (ranks.size() < 2 || twice != ranks.end()) return {};
  compare(ranks);
  return ranks;
}

const RankSteps* straggler_of(const std::vector<RankSteps>& ranks) {
  const auto last = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankSteps& a, const RankSteps& b) { return a.score < b.score; });
  return last == ranks.end() || last->score < kBehind ? nullptr : &*last;
}

}  // namespace gputrace
