#include "analysis/run/runs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace gputrace {
namespace {

using Places = std::vector<std::size_t>;

class Runs {
 public:
  explicit Runs(const std::vector<ProcessTrace>& processes) : processes_(processes), first_(processes.size()) {
    std::iota(first_.begin(), first_.end(), 0u);
  }

  Places find() {
    std::map<std::string, Places> by_name, jobs;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const ProcessIdentity& who = processes_[i].who;
      by_name[!who.run.empty() ? "run " + who.run : who.job.empty() ? "" : "job " + who.job].push_back(i);
      if (!who.run.empty() && !who.job.empty()) jobs[who.job].push_back(i);
    }
    for (const auto& [name, places] : by_name) {
      if (!name.empty())
        join(places);
      else
        for (const Places& together : alive_together(places)) join(together);
    }
    for (const auto& [job, places] : jobs) {
      for (const Places& together : alive_together(places)) {
        if (are_ranks(together)) join(together);
      }
    }
    Places found(first_.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = first(i);
    return found;
  }

 private:
  std::size_t first(std::size_t place) const {
    while (first_[place] != place) place = first_[place];
    return place;
  }
  void join(const Places& places) {
    for (const std::size_t place : places) {
      const std::size_t one = first(places.front()), other = first(place);
      first_[std::max(one, other)] = std::min(one, other);
    }
  }

  // Groups of those that were alive at one time, or with others in between.
  std::vector<Places> alive_together(Places places) const {
    const auto begin = [&](std::size_t place) { return processes_[place].first_realtime; };
    std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return begin(a) < begin(b); });
    std::vector<Places> groups;
    Nanos until = 0;
    for (const std::size_t place : places) {
      if (groups.empty() || begin(place) >= until) groups.emplace_back();
      groups.back().push_back(place);
      until = std::max(until, begin(place) + (processes_[place].end - processes_[place].begin));
    }
    return groups;
  }

  // Each has a rank, and no two runs have the same.
  bool are_ranks(const Places& places) const {
    std::map<std::string, std::string> run_of_rank;
    for (const std::size_t place : places) {
      const ProcessIdentity& who = processes_[place].who;
      if (who.rank.empty() || run_of_rank.emplace(who.rank, who.run).first->second != who.run) return false;
    }
    return true;
  }

  const std::vector<ProcessTrace>& processes_;
  Places first_;  // by process, one of its run that comes before it, or itself
};

}  // namespace

std::vector<std::size_t> runs_of(const std::vector<ProcessTrace>& processes) { return Runs(processes).find(); }

std::vector<bool> were_started_anew(const std::vector<ProcessTrace>& processes) {
  const std::vector<std::size_t> runs = runs_of(processes);
  std::map<std::size_t, u32> last;  // by run
  for (std::size_t i = 0; i < processes.size(); ++i) {
    u32& restart = last[runs[i]];
    restart = std::max(restart, processes[i].who.restart);
  }
  std::vector<bool> anew(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i)
    anew[i] = !processes[i].who.rank.empty() && processes[i].who.restart < last[runs[i]];
  return anew;
}

}  // namespace gputrace
