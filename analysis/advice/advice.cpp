#include "analysis/advice/advice.h"

#include <algorithm>
#include <vector>

#include "analysis/lines/graph_breaks.h"

namespace gputrace {
namespace {

struct OwnWords {
  Advice what;
  Maker maker;
  const char* words;
};

constexpr OwnWords kRows[] = {
#define GT_ADVICE(what, maker, words) {Advice::what, Maker::maker, words},
#include "analysis/advice/advice.def"
#undef GT_ADVICE
};

const char* own_words(Advice what, Maker maker) {
  for (const OwnWords& row : kRows) {
    if (row.what == what && row.maker == maker) return row.words;
  }
  return nullptr;
}

// A trainer's words before those of its framework, and these before those for all.
Maker stands_on(Maker maker) {
  switch (maker) {
    case Maker::Transformers:
    case Maker::Lightning:
    case Maker::KerasOnPyTorch:
    case Maker::CompiledPyTorch:
    case Maker::Vllm:
    case Maker::Sglang:
      return Maker::PyTorch;
    case Maker::KerasOnJax:
      return Maker::Jax;
    case Maker::KerasOnTensorFlow:
      return Maker::TensorFlow;
    default:
      return Maker::General;
  }
}

bool replays_graphs(const ProcessTrace& process) {
  constexpr u64 kOf = 10, kNearlyAll = 9;  // kernels
  u64 replayed = 0;
  for (const Graph& graph : process.graphs) replayed += graph.launches * graph.kernel_nodes;
  return replayed * kOf >= (replayed + process.plain_launches) * kNearlyAll && replayed != 0;
}

}  // namespace

std::string advise(Advice what, Maker maker) {
  const Maker in_order[] = {maker, is_keras(maker) ? Maker::Keras : maker, stands_on(maker), Maker::General};
  for (const Maker each : in_order) {
    if (const char* const words = own_words(what, each)) return words;
  }
  return "";
}

std::string advise(Advice what, const ProcessTrace& process) { return advise(what, calls_made(process).by); }

std::string without_graph_breaks(const ProcessTrace& process) {
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string> breaks = graph_breaks(process);
  std::string lines;
  for (std::size_t i = 0; i < std::min(kNamed, breaks.size()); ++i) lines += (i ? ", " : "") + breaks[i];
  if (breaks.size() > kNamed) lines += " and " + std::to_string(breaks.size() - kNamed) + " more";
  return lines.empty() ? ""
                       : "no graph breaks in what is compiled (at " + lines + "; TORCH_LOGS=graph_breaks says why)";
}

std::string fewer_launches(const ProcessTrace& process) {
  constexpr double kGoodPart = 0.2;  // of all launches
  const CallsMade made = calls_made(process);
  if (replays_graphs(process)) return advise(Advice::MoreInGraphs, made.by);
  std::string words = without_graph_breaks(process);
  if (!words.empty()) words += ", ";
  if (made.in_replicas >= kGoodPart)
    words +=
        "DistributedDataParallel, a process for each device, instead of DataParallel, whose threads take turns and "
        "which copies the model at each step, ";
  if (made.in_optimizer >= kGoodPart)
    words += "one call for all parameters in the optimizer (fused=True, or foreach=True), ";
  if (made.in_zero_grad >= kGoodPart) words += "zero_grad(set_to_none=True), ";
  return words + advise(Advice::FewerLaunches, made.by);
}

}  // namespace gputrace
