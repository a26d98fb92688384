#include "analysis/run/communicator_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/run/runs.h"

namespace gputrace {
namespace {

bool is_known(const CommunicatorFacts& made) { return made.id != 0 && made.ranks > 1 && made.rank >= 0; }

// The first of the largest ones; nullptr: none is known.
const CommunicatorFacts* largest_of(const ProcessTrace& process) {
  const CommunicatorFacts* largest = nullptr;
  for (const CommunicatorFacts& made : process.library.communicators)
    if (is_known(made) && (!largest || made.ranks > largest->ranks)) largest = &made;
  return largest;
}

// Whether the process is more than one rank of it.
bool has_several(const ProcessTrace& process, const CommunicatorFacts& of) {
  const auto& all = process.library.communicators;
  return std::any_of(all.begin(), all.end(), [&of](const CommunicatorFacts& made) {
    return made.id == of.id && made.rank >= 0 && made.rank != of.rank;
  });
}

void take_ranks(const std::vector<ProcessTrace*>& run) {
  std::vector<std::pair<ProcessTrace*, CommunicatorFacts>> members;
  std::set<i32> ranks;
  for (ProcessTrace* const process : run) {
    const CommunicatorFacts* const largest = largest_of(*process);
    if (!process->who.rank.empty()) return;
    if (!largest) continue;
    const bool is_of_it = members.empty() || members.front().second.id == largest->id;
    if (!is_of_it || has_several(*process, *largest) || !ranks.insert(largest->rank).second) return;
    members.emplace_back(process, *largest);
  }
  if (members.size() < 2) return;
  for (auto& [process, communicator] : members) {
    process->who.rank = std::to_string(communicator.rank);
    process->notes.push_back(fmt::format(
        "it is rank {} of {} of its largest NCCL communicator; no launcher's variable says which rank it is",
        communicator.rank, communicator.ranks));
  }
}

}  // namespace

void take_ranks_of_communicators(std::vector<ProcessTrace>& processes) {
  const std::vector<std::size_t> runs = runs_of(processes);
  std::map<std::size_t, std::vector<ProcessTrace*>> of_run;
  for (std::size_t i = 0; i < processes.size(); ++i) of_run[runs[i]].push_back(&processes[i]);
  for (const auto& [first, run] : of_run) take_ranks(run);
}

}  // namespace gputrace
