// What makes a run's input, as far as samples tell: which functions were found in loaders, and how often.
//   · A loader is a worker process of PyTorch's DataLoader, or what a thread does within a DataLoader's `__next__` that loads in
//     that thread itself.
//   · A worker that waits to be asked for a batch makes none: those samples are left out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Processes forked from that one that load data, and how many samples found each.
std::map<i32, u64> loader_processes(const ProcessTrace& process);

struct InputOp {
  std::string op;                     // "data.py Data.__getitem__"
  u64 samples = 0, self_samples = 0;  // that found it, and that found it innermost
  u64 total_ns = 0, self_ns = 0;      // those times how long after the look before
  bool ahead = false;                 // in a worker: while the loop goes on
};

struct InputOps {
  std::vector<InputOp> ops;  // by total, the largest first; within and ahead of the loop apart
  u64 samples = 0;           // of loaders at work
  u64 waiting = 0;           // of workers that had nothing to do: left out
  u64 all_ns = 0;
};
InputOps input_ops_of(const LoadedRun& run);

}  // namespace gputrace
