#include "analysis/lines/loaders.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/lines/callers_first.h"

namespace gputrace {
namespace {

// A part of the file's path, and one of the function's name.
struct Asking {
  std::string_view file, function;
  const char* loader;
  bool in_its_thread = false;
};
constexpr std::array<Asking, 12> kAsking = {{
    {"/tensorflow/python/data/ops/iterator_ops.py", "__next__", kTfData},
    {"/tensorflow/python/data/ops/iterator_ops.py", "get_next", kTfData},
    {"/keras/src/trainers/data_adapters/py_dataset_adapter.py", "", kPyDataset, true},
    {"/keras/src/trainers/data_adapters/", "", "Keras' data adapters", true},
    {"/grain/_src/python/", "__next__", kGrain, true},
    {"/datasets/arrow_dataset.py", "iter", kHuggingFace, true},
    {"/datasets/arrow_dataset.py", "__getitem__", kHuggingFace, true},
    {"/datasets/iterable_dataset.py", "iter", kHuggingFace, true},
    {"/nvidia/dali/plugin/", "__next__", "DALI"},
    {"/ffcv/loader/epoch_iterator.py", "__next__", "FFCV"},
    {"/torchdata/nodes/", "__next__", kTorchData},
    {"/torch/utils/data/", "", kTorchLoader},
}};

const Asking* asked_by(const SourceFrame& frame) {
  for (const Asking& known : kAsking) {
    if (frame.file.find(known.file) != std::string::npos && frame.function.find(known.function) != std::string::npos &&
        frame.function != "<module>")
      return &known;
  }
  return nullptr;
}

}  // namespace

bool runs_for_tf_data(const SourceFrame& frame) {
  return frame.file.ends_with("/tensorflow/python/ops/script_ops.py") && frame.function != "<module>";
}

bool runs_for_loader(const SourceFrame& frame) {
  return runs_for_tf_data(frame) ||
         (frame.function == "_apply_udf" && frame.file.ends_with("/torchdata/nodes/_apply_udf.py")) ||
         (frame.function == "_getitem" &&
          frame.file.ends_with("/grain/_src/python/dataset/transformations/prefetch.py"));
}

bool loads_where_asked(const SourceFrame& frame) {
  const Asking* const asking = asked_by(frame);
  return asking && asking->in_its_thread;
}

LoaderStacks::LoaderStacks(const SourceFrames& frames) : stacks_(std::max<std::size_t>(1, frames.size())) {
  for_callers_first(frames, [&](u32 frame, u32 caller) {
    Stack stack = stacks_[caller];
    const SourceFrame& here = frames[frame];
    const Asking* const asking = asked_by(here);
    if (asking && !stack.asked) stack.asked = asking->loader;
    stack.makes = stack.makes || runs_for_loader(here);
    stack.makes_for_tf_data = stack.makes_for_tf_data || runs_for_tf_data(here);
    const std::string_view file = within_packages(here);
    stack.in_tensorflow = file.starts_with("tensorflow/") || file.starts_with("keras/");
    stacks_[frame] = stack;
  });
}

}  // namespace gputrace
