#include "analysis/advice/made_by.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

enum class Trainer : u8 { None, Transformers, Lightning, Keras, Vllm, Sglang };

// What is known of a stack that ends in a frame.
struct Known {
  Maker framework = Maker::General;  // the innermost one
  Trainer trainer = Trainer::None;   // the innermost one
  bool optimizer = false, zero_grad = false, compiled = false, replica = false;
};

bool begins_with(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

Maker framework_of(const SourceFrame& frame, std::string_view file) {
  constexpr std::string_view kBackends = "keras/src/backend/";  // "torch/trainer.py"
  if (begins_with(file, kBackends)) file.remove_prefix(kBackends.size());
  if (begins_with(file, "torch/") || (frame.file.empty() && begins_with(frame.function, "aten::")))
    return Maker::PyTorch;
  if (begins_with(file, "jax/") || begins_with(file, "jaxlib/")) return Maker::Jax;
  if (begins_with(file, "numba/") || begins_with(file, "numba_cuda/")) return Maker::Numba;
  if (begins_with(file, "cupy/") || begins_with(file, "cupyx/")) return Maker::CuPy;
  return begins_with(file, "tensorflow/") ? Maker::TensorFlow : Maker::General;
}

Trainer trainer_of(std::string_view file) {
  if (begins_with(file, "transformers/trainer")) return Trainer::Transformers;
  if (begins_with(file, "lightning/") || begins_with(file, "pytorch_lightning/")) return Trainer::Lightning;
  if (begins_with(file, "vllm/")) return Trainer::Vllm;
  if (begins_with(file, "sglang/")) return Trainer::Sglang;
  return begins_with(file, "keras/") ? Trainer::Keras : Trainer::None;
}

// Whose program XLA runs, by whose Python is seen elsewhere in the process: a jitted function that was called before is called from the program's
// own line, without a frame of JAX's.
Maker user_of_xla(const std::vector<Known>& all) {
  const auto is_of = [&all](Maker maker) {
    return std::any_of(all.begin(), all.end(), [maker](const Known& known) { return known.framework == maker; });
  };
  return is_of(Maker::TensorFlow) ? Maker::TensorFlow : is_of(Maker::Jax) ? Maker::Jax : Maker::General;
}

// By frame; callers are numbered first.
std::vector<Known> known_of(const std::vector<SourceFrame>& frames) {
  std::vector<Known> all(frames.size());
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const SourceFrame& frame = frames[i];
    const std::string_view file = within_packages(frame);
    Known& known = all[i];
    if (frame.parent < i) known = all[frame.parent];
    if (const Maker framework = framework_of(frame, file); framework != Maker::General) known.framework = framework;
    if (const Trainer trainer = trainer_of(file); trainer != Trainer::None) known.trainer = trainer;
    if (frame.file.empty() &&
        (begins_with(frame.function, "Torch-Compiled Region") || begins_with(frame.function, "CompiledFunction")))
      known.compiled = true;
    if (begins_with(file, "torch/nn/parallel/parallel_apply.py") ||
        begins_with(file, "torch/nn/parallel/data_parallel.py"))
      known.replica = true;
    if (begins_with(file, "torch/optim/") && frame.function != "zero_grad") known.optimizer = true;
    if (begins_with(file, "torch/") && frame.function.find("zero_grad") != std::string::npos) known.zero_grad = true;
  }
  const Maker of_xla = user_of_xla(all);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    if (frames[i].xla) all[i].framework = of_xla;
  }
  return all;
}

Maker maker_of(Maker framework, Trainer trainer) {
  switch (trainer) {
    case Trainer::Transformers:
      return Maker::Transformers;
    case Trainer::Lightning:
      return Maker::Lightning;
    case Trainer::Keras:
      return framework == Maker::PyTorch      ? Maker::KerasOnPyTorch
             : framework == Maker::Jax        ? Maker::KerasOnJax
             : framework == Maker::TensorFlow ? Maker::KerasOnTensorFlow
                                              : Maker::Keras;
    case Trainer::Vllm:
      return Maker::Vllm;
    case Trainer::Sglang:
      return Maker::Sglang;
    case Trainer::None:
      break;
  }
  return framework;
}

// PyTorch's own C++ (libtorch) makes the same operations, and none of what its Python offers.
bool has_python(const ProcessTrace& process) {
  const auto& frames = process.lines.frames;
  return is_interpreter(process.who.executable) ||
         std::any_of(frames.begin(), frames.end(),
                     [](const SourceFrame& frame) { return !frame.native && !frame.file.empty(); });
}

template <typename Counts>
std::size_t largest(const Counts& counts) {
  return static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

}  // namespace

bool is_keras(Maker maker) {
  return maker == Maker::Keras || maker == Maker::KerasOnPyTorch || maker == Maker::KerasOnJax ||
         maker == Maker::KerasOnTensorFlow;
}

CallsMade calls_made(const ProcessTrace& process) {
  const SourceLines& lines = process.lines;
  const std::vector<Known> known = known_of(lines.frames);
  std::array<u64, static_cast<std::size_t>(Maker::CuPy) + 1> frameworks{};
  std::array<u64, static_cast<std::size_t>(Trainer::Sglang) + 1> trainers{};
  u64 launches = 0, in_optimizer = 0, in_zero_grad = 0, compiled = 0, in_replicas = 0;
  for (std::size_t i = 0; i < std::min(lines.totals.size(), lines.origins.size()); ++i) {
    const StackTotals& totals = lines.totals[i];
    const CallOrigin& origin = lines.origins[i];
    const Known by_line = origin.frame < known.size() ? known[origin.frame] : Known{};
    const Known by_operation = origin.operation < known.size() ? known[origin.operation] : Known{};
    const Maker framework = by_operation.framework != Maker::General ? by_operation.framework : by_line.framework;
    if (origin.frame != 0 || framework != Maker::General) {  // a thread that shows nothing speaks for nobody
      frameworks[static_cast<std::size_t>(framework)] += totals.calls;
      trainers[static_cast<std::size_t>(by_line.trainer)] += totals.calls;
    }
    launches += totals.launches;
    compiled += by_operation.compiled ? totals.launches : 0;
    in_replicas += by_line.replica ? totals.launches : 0;
    if (by_line.zero_grad)
      in_zero_grad += totals.launches;
    else if (by_line.optimizer)
      in_optimizer += totals.launches;
  }
  // A loop whose calls are all a framework's own threads': the frames tell of the calls before it.
  if (std::all_of(frameworks.begin(), frameworks.end(), [](u64 calls) { return calls == 0; })) {
    for (const Known& frame : known) {
      ++frameworks[static_cast<std::size_t>(frame.framework)];
      ++trainers[static_cast<std::size_t>(frame.trainer)];
    }
    frameworks[0] = trainers[0] = 0;  // callers of the others
  }
  CallsMade made;
  made.by = maker_of(static_cast<Maker>(largest(frameworks)), static_cast<Trainer>(largest(trainers)));
  if (made.by == Maker::PyTorch && !has_python(process)) made.by = Maker::General;
  if (launches == 0) return made;
  constexpr u64 kTenth = 10;
  if (made.by == Maker::PyTorch && kTenth * compiled >= launches) made.by = Maker::CompiledPyTorch;
  made.in_replicas = static_cast<double>(in_replicas) / static_cast<double>(launches);
  made.in_optimizer = static_cast<double>(in_optimizer) / static_cast<double>(launches);
  made.in_zero_grad = static_cast<double>(in_zero_grad) / static_cast<double>(launches);
  return made;
}

}  // namespace gputrace
