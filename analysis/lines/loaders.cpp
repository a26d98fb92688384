#include "analysis/lines/loaders.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/lines/callers_first.h"

namespace gputrace {
namespace {

// A part of the file's path, and one of the function's name: the first of the table that fits. No loader: such a frame asks none.
struct Asking {
  std::string_view file, function;
  std::string_view loader;
  bool in_its_thread = false;
};
constexpr std::array<Asking, 18> kAsking = {{
    {"/tensorflow/python/data/ops/iterator_ops.py", "__next__", kTfData},
    {"/tensorflow/python/data/ops/iterator_ops.py", "get_next", kTfData},
    // Its enqueuer has batches made by threads or processes of a pool; without one it makes them itself.
    {"/keras/src/trainers/data_adapters/py_dataset_adapter.py", "enqueuer_generator", kPyDataset},
    {"/keras/src/trainers/data_adapters/py_dataset_adapter.py", "_generator", kPyDataset, true},
    {"/keras/src/trainers/data_adapters/py_dataset_adapter.py", "", {}},
    {"/keras/src/trainers/data_adapters/", "", kKerasData, true},
    {"/grain/_src/python/", "__next__", kGrain, true},
    {"/datasets/arrow_dataset.py", "iter", kHuggingFace, true},
    {"/datasets/arrow_dataset.py", "__getitem__", kHuggingFace, true},
    {"/datasets/iterable_dataset.py", "iter", kHuggingFace, true},
    {"/nvidia/dali/plugin/", "__next__", "DALI"},
    {"/ffcv/loader/epoch_iterator.py", "__next__", "FFCV"},
    {"/torchdata/nodes/", "__next__", kTorchData},
    {"/ray/data/iterator.py", "_create_iterator", kRayData},
    {"/torchdata/stateful_dataloader/stateful_dataloader.py", "SingleProcessDataLoaderIter._next_data", kTorchLoader,
     true},
    {"/torchdata/stateful_dataloader/", "", kTorchLoader},
    {"/torch/utils/data/dataloader.py", "SingleProcessDataLoaderIter._next_data", kTorchLoader, true},
    {"/torch/utils/data/", "", kTorchLoader},
}};

// The end of the file's path, and the begin of the function's name.
struct Running {
  std::string_view file, function;
  std::string_view loader;
};
constexpr std::array<Running, 5> kRunning = {{
    {"/tensorflow/python/ops/script_ops.py", "", kTfData},
    {"/torchdata/nodes/_apply_udf.py", "_apply_udf", kTorchData},
    {"/grain/_src/python/dataset/transformations/prefetch.py", "_getitem", kGrain},
    {"/keras/src/trainers/data_adapters/py_dataset_adapter.py", "get_index", kPyDataset},
    {"/ray/data/_internal/execution/operators/map_operator.py", "_map_task", kRayData},
}};

constexpr std::string_view kWorkers[] = {"torch/utils/data/_utils/worker.py",
                                         "torchdata/stateful_dataloader/worker.py"};
constexpr std::string_view kLoaders[] = {"torch/utils/data/dataloader.py",
                                         "torchdata/stateful_dataloader/stateful_dataloader.py"};

bool is_in(const SourceFrame& frame, const std::string_view (&files)[2]) {
  return std::any_of(std::begin(files), std::end(files),
                     [&](std::string_view file) { return frame.file.ends_with(file); });
}

const Asking* asked_by(const SourceFrame& frame) {
  for (const Asking& known : kAsking) {
    if (frame.file.find(known.file) != std::string::npos && frame.function.find(known.function) != std::string::npos &&
        frame.function != "<module>")
      return &known;
  }
  return nullptr;
}

}  // namespace

std::string_view loader_that_runs(const SourceFrame& frame) {
  for (const Running& known : kRunning) {
    if (frame.file.ends_with(known.file) && frame.function.starts_with(known.function) && frame.function != "<module>")
      return known.loader;
  }
  return {};
}

bool is_worker_loop(const SourceFrame& frame) { return frame.function == "_worker_loop" && is_in(frame, kWorkers); }

bool starts_or_ends_workers(const SourceFrame& frame) {
  const std::string& name = frame.function;
  return is_in(frame, kLoaders) &&
         (name.ends_with("__init__") || name.ends_with("__del__") || name.ends_with("_shutdown_workers"));
}

// Before CPython 3.11 a function's name has no class, and `_next_data` is that of a loader with workers, too: which only one without them
// fetches by itself.
std::vector<bool> frames_that_load(const SourceFrames& frames) {
  std::vector<bool> loads(frames.size(), false);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const SourceFrame& frame = frames[i];
    const Asking* const asking = asked_by(frame);
    if (asking && asking->in_its_thread) loads[i] = true;
    const bool fetches = frame.function == "fetch" && frame.file.ends_with("torch/utils/data/_utils/fetch.py");
    if (!fetches || frame.parent == 0 || frame.parent >= frames.size()) continue;
    const SourceFrame& caller = frames[frame.parent];
    if (caller.function == "_next_data" && is_in(caller, kLoaders)) loads[frame.parent] = true;
  }
  return loads;
}

LoaderStacks::LoaderStacks(const SourceFrames& frames) : stacks_(std::max<std::size_t>(1, frames.size())) {
  for_callers_first(frames, [&](u32 frame, u32 caller) {
    Stack stack = stacks_[caller];
    const SourceFrame& here = frames[frame];
    const Asking* const asking = asked_by(here);
    const bool says_more = asking && !asking->loader.empty() && stack.asked == kKerasData;  // which of them it is
    if (asking && (stack.asked.empty() || says_more)) stack.asked = asking->loader;
    if (const std::string_view loader = loader_that_runs(here); !loader.empty()) stack.makes = loader;
    const std::string_view file = within_packages(here);
    stack.in_tensorflow = file.starts_with("tensorflow/") || file.starts_with("keras/");
    stacks_[frame] = stack;
  });
}

}  // namespace gputrace
