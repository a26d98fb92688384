#include "writer/sample/process_tree.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "writer/host.h"
#include "writer/sample/numbers_in.h"

namespace gputrace {
namespace {

constexpr Nanos kHalfSecond = 500'000'000;
constexpr Nanos kLookForProcessesEvery = kHalfSecond, kLookForAllEvery = 16 * kHalfSecond;
constexpr Nanos kTreeShare = 1000;  // one part of it is ours

}  // namespace

void ProcessTree::look() {
  const Nanos began = monotonic_nanos(), begin = clock_nanos(CLOCK_THREAD_CPUTIME_ID);
  const bool whole = began >= next_whole_;
  ++looks_;
  std::vector<Process> all;
  numbers_in("/proc", [&](i32 pid) {
    if (pid == root_ || pid == ::getpid()) return;
    const auto stranger = strangers_.find(pid);
    if (stranger != strangers_.end() && !whole) return static_cast<void>(stranger->second = looks_);
    const ProcessStat stat = process_stat(pid);
    if (stat.known && stat.state != 'Z') all.push_back({pid, stat.parent});
  });
  descendants_.clear();
  std::vector<i32> parents{root_};
  for (std::size_t i = 0; i < parents.size(); ++i) {
    for (Process& each : all) {
      if (each.pid == 0 || each.parent != parents[i] || descendants_.size() == kMostProcesses) continue;
      descendants_.push_back(each);
      parents.push_back(each.pid);
      each.pid = 0;
    }
  }
  // A process keeps its parent or loses it: a stranger does not become one of ours.
  for (const Process& each : all) {
    if (each.pid != 0) strangers_[each.pid] = looks_;
  }
  std::erase_if(strangers_, [this](const auto& stranger) { return stranger.second != looks_; });
  const Nanos took = clock_nanos(CLOCK_THREAD_CPUTIME_ID) - begin, now = monotonic_nanos();
  cpu_ += took;
  if (whole) next_whole_ = now + std::max(kLookForAllEvery, took * kTreeShare);
  next_ = now + (whole ? kLookForProcessesEvery : std::max(kLookForProcessesEvery, took * kTreeShare));
}

}  // namespace gputrace
