// The processes that come from the traced one, as /proc says them: looked for twice a second. Workers of a data loader make no
// file of their own; this is how they are found.
//   · At most a thousandth of a core but for the first look, and a whole one every eight seconds or less often: in between a
//     number that was another's process is not asked about again.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace gputrace {

class ProcessTree {
 public:
  struct Process {
    i32 pid, parent;
  };

  explicit ProcessTree(i32 root) : root_(root) {}

  Nanos next() const { return next_; }  // CLOCK_MONOTONIC
  void look();
  // Parents before their children; without the root, and without processes that have ended.
  const std::vector<Process>& descendants() const { return descendants_; }
  u64 looks() const { return looks_; }
  Nanos cpu() const { return cpu_; }

  static constexpr std::size_t kMostProcesses = 256;

 private:
  const i32 root_;
  std::unordered_map<i32, u64> strangers_;  // by number: the newest look that listed it
  std::vector<Process> descendants_;
  u64 looks_ = 0;
  Nanos next_ = 0, next_whole_ = 0, cpu_ = 0;
};

}  // namespace gputrace
