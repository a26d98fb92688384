#include "analysis/run/collective_match.h"

#include <algorithm>
#include <map>
#include <set>

namespace gputrace {
namespace {

// One rank of a communicator: its collectives in order.
struct Member {
  std::size_t process = 0;
  i32 rank = -1, ranks = -1;
  std::vector<const CollectiveInstance*> instances;
};

bool complete(const std::vector<Member>& members) {
  std::set<i32> ranks;
  for (const Member& member : members) {
    if (member.ranks != members[0].ranks || member.rank < 0) return false;
    if (member.instances.size() != members[0].instances.size()) return false;
    ranks.insert(member.rank);
  }
  return members[0].ranks > 1 && members.size() == static_cast<std::size_t>(members[0].ranks) &&
         ranks.size() == members.size();
}

}  // namespace

CollectiveTimes match_collectives(const LoadedRun& run) {
  CollectiveTimes times;
  std::map<u64, std::vector<Member>> communicators;  // by id
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    const LibraryFacts& library = process.library;
    times.rows.emplace_back(library.rows.size());
    std::vector<std::size_t> member_of(library.communicators.size(), 0);
    for (std::size_t c = 0; c < library.communicators.size(); ++c) {
      const CommunicatorFacts& facts = library.communicators[c];
      if (facts.id == 0) continue;
      auto& members = communicators[facts.id];
      member_of[c] = members.size();
      members.push_back({p, facts.rank, facts.ranks, {}});
    }
    for (const CollectiveInstance& instance : library.collectives) {
      const u64 id = library.communicators[instance.communicator].id;
      if (id) communicators[id][member_of[instance.communicator]].instances.push_back(&instance);
    }
  }
  const auto row_of = [&](const Member& member, std::size_t i) -> const LibraryRow& {
    return run.processes[member.process].library.rows[member.instances[i]->row];
  };
  for (const auto& [id, members] : communicators) {
    if (!complete(members)) continue;
    for (std::size_t i = 0; i < members[0].instances.size(); ++i) {
      const LibraryShape& first = row_of(members[0], i).shape;
      u64 shortest = ~0ull;
      bool same = true;
      for (const Member& member : members) {
        const LibraryShape& shape = row_of(member, i).shape;
        same = same && member.instances[i]->timed && shape.what == first.what && shape.m == first.m &&
               shape.type_a == first.type_a;
        shortest = std::min(shortest, member.instances[i]->device_ns);
      }
      for (const Member& member : members) {
        if (!same) break;
        CollectiveTime& time = times.rows[member.process][member.instances[i]->row];
        ++time.matched;
        time.transfer_ns += shortest;
        time.wait_ns += member.instances[i]->device_ns - shortest;
      }
    }
  }
  return times;
}

}  // namespace gputrace
