// What makes a run's input, as far as samples tell: which functions were found in loaders, and how often.
//   · A loader is a worker process of PyTorch's DataLoader, what a thread does within a DataLoader's `__next__` that loads in that thread
//     itself (or another loader of lines/loaders.h that does), or a function of the program's own that a loader of lines/loaders.h runs in
//     threads or processes of its own.
//   · A worker that waits to be asked for a batch makes none: those samples are left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

// Processes forked from that one that load data, and how many samples found each.
std::map<i32, u64> loader_processes(const ProcessTrace& process);

// Stacks that lie within a loader: one which loads in the thread that asks it, or its workers. `frames` outlives it.
class LoaderFrames {
 public:
  // OtherThread: one of a loader's own, else one that asks its loader ahead of the loop.
  enum class Of : u8 { OwnThread, OtherThread, Workers };
  enum class Place : u8 { Other, WorkerLoop, OwnLoader, Queue };  // what a frame is
  explicit LoaderFrames(const std::vector<SourceFrame>& frames, Of of = Of::OwnThread);
  // Of the stack that ends there those frames that the loader called, innermost first; none: it is in no such one, or a worker that waits
  // to be asked.
  std::vector<u32> within(u32 innermost) const;

 private:
  const std::vector<SourceFrame>& frames_;
  const Of of_;
  std::vector<Place> places_;  // by frame
};

struct InputOp {
  std::string op;                     // "data.py Data.__getitem__"
  std::optional<u64> bytes;           // that it read, from files; nothing: not known
  u64 samples = 0, self_samples = 0;  // that found it, and that found it innermost
  u64 total_ns = 0, self_ns = 0;      // those times how long after the look before
  bool ahead = false;                 // in a worker or another thread: while the loop goes on
};

struct InputOps {
  std::vector<InputOp> ops;  // by total, the largest first; within and ahead of the loop apart
  u64 samples = 0;           // of loaders at work
  u64 waiting = 0;           // of workers that had nothing to do: left out
  u64 all_ns = 0;
};
InputOps input_ops_of(const LoadedRun& run);

}  // namespace gputrace
