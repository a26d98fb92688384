#include "analysis/run/restarts.h"

#include <algorithm>
#include <map>

#include "analysis/run/runs.h"

namespace gputrace {

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
