// Loaders that set no mark: by which functions a program asks them for its next batch, and in which they call the program's own ones. Of
// stacks that looks at threads found; a table of files and functions, as the packages have them.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/lines/sites.h"

namespace gputrace {

// Loaders as their users call them; empty is none.
inline constexpr std::string_view kTfData = "tf.data", kGrain = "Grain", kHuggingFace = "Hugging Face's datasets",
                                  kPyDataset = "Keras' PyDataset", kKerasData = "Keras' data adapters",
                                  kTorchLoader = "PyTorch's DataLoader", kTorchData = "torchdata",
                                  kRayData = "Ray Data";

// The loader in whose frame it runs what the program gave it to make batches with, in threads or processes of its own: tf.data's py_function,
// numpy_function and from_generator, torchdata's ParallelMapper, Grain's prefetch, the pool of Keras' PyDataset, the tasks of Ray Data. Empty:
// it is no such frame.
std::string_view loader_that_runs(const SourceFrame& frame);
// The loop of a worker process of PyTorch's DataLoader, or of torchdata's StatefulDataLoader, which is one.
bool is_worker_loop(const SourceFrame& frame);
// A frame in which such a loader starts or ends its workers.
bool starts_or_ends_workers(const SourceFrame& frame);
// Of each frame, whether a loader makes the batch there in the thread that asks for it.
std::vector<bool> frames_that_load(const SourceFrames& frames);

class LoaderStacks {
 public:
  explicit LoaderStacks(const SourceFrames& frames);

  // The loader that the stack which ends there asks for a batch, as its users call it ("tf.data"); empty: it asks none.
  std::string_view asked(u32 frame) const { return at(frame).asked; }
  // The loader in whose thread or process it makes batches beside the loop; empty: it is in none.
  std::string_view maker(u32 frame) const { return at(frame).makes; }
  bool makes(u32 frame) const { return !maker(frame).empty(); }
  // It is in what tf.data, or Keras' enqueuer, which may stand behind it, runs.
  bool makes_within_a_graph(u32 frame) const { return at(frame).makes == kTfData || at(frame).makes == kPyDataset; }
  // It is in a function of TensorFlow's or Keras': a graph that it waits for there may ask for its batch itself (Keras' fit).
  bool in_tensorflow(u32 frame) const { return at(frame).in_tensorflow; }

 private:
  struct Stack {
    std::string_view asked, makes;  // loaders
    bool in_tensorflow = false;
  };
  const Stack& at(u32 frame) const { return stacks_[frame < stacks_.size() ? frame : 0]; }

  std::vector<Stack> stacks_;  // by innermost frame
};

}  // namespace gputrace
