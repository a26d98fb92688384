#include "analysis/run/compiling.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "analysis/run/sites.h"

namespace gputrace {
namespace {

constexpr Nanos kLongestLook = 100'000'000;  // what a sample stands for at most, where the next one comes late

// Files that are run to compile only, and functions (a part of their names) of those that do more.
struct CompilerFile {
  const char* file;
  const char* function;
  const char* compiler;
};
constexpr std::array<CompilerFile, 12> kCompilerFiles = {{
    {"torch/_dynamo/convert_frame.py", "", "torch.compile"},
    {"torch/_inductor/compile_fx.py", "compile", "torch.compile"},
    {"torch/_inductor/async_compile.py", "", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "compile", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "benchmark", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "autotune", "torch.compile"},
    {"triton/compiler/compiler.py", "", "Triton"},
    {"triton/runtime/autotuner.py", "bench", "Triton"},
    {"jax/_src/compiler.py", "", "JAX"},
    {"jax/_src/interpreters/mlir.py", "", "JAX"},
    {"numba/core/compiler.py", "", "Numba"},
    {"numba/cuda/compiler.py", "", "Numba"},
}};

const char* compiler_of(const SourceFrame& frame) {
  for (const CompilerFile& known : kCompilerFiles) {
    if (frame.file.ends_with(known.file) && frame.function.find(known.function) != std::string::npos)
      return known.compiler;
  }
  return nullptr;
}

// By frame: the outermost compiler among it and those that called it; nullptr: none.
std::vector<const char*> compilers_of(const SourceFrames& frames) {
  std::vector<const char*> found(frames.size(), nullptr);
  std::vector<bool> known(frames.size(), false);
  std::vector<u32> path;
  for (u32 frame = 1; frame < frames.size(); ++frame) {
    path.clear();
    u32 at = frame;
    for (; at != 0 && at < frames.size() && !known[at]; at = frames[at].parent) {
      known[at] = true;  // before its callers are: definitions of a damaged file may be in a ring
      path.push_back(at);
    }
    const char* outer = at < frames.size() ? found[at] : nullptr;
    for (auto it = path.rbegin(); it != path.rend(); ++it)
      found[*it] = outer = outer ? outer : compiler_of(frames[*it]);
  }
  return found;
}

using Span = std::pair<Nanos, Nanos>;

u64 length_of_union(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end());
  u64 sum = 0;
  Nanos until = INT64_MIN;
  for (const auto& [begin, end] : spans) {
    if (end > until) sum += static_cast<u64>(end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

template <typename Key>
Key most_of(const std::map<Key, u64>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Key{} : most->first;
}

}  // namespace

Compiling compiling_of(const ProcessTrace& process) {
  const SourceFrames& frames = process.samples.frames;
  const std::vector<const char*> compilers = compilers_of(frames);
  Compiling found;
  found.of = process.steps.steps.size();
  if (std::none_of(compilers.begin(), compilers.end(), [](const char* name) { return name != nullptr; })) return found;
  const FileNames names(process);
  std::vector<Span> spans;
  std::map<std::string, u64> sites, by_compiler;
  for (const SampledThread& series : process.samples.threads) {
    if (series.process != 0) continue;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const SamplePoint& point = series.points[i];
      if (point.frame >= compilers.size() || !compilers[point.frame]) continue;
      const Nanos next = i + 1 < series.points.size() ? series.points[i + 1].at : process.end;
      spans.emplace_back(point.at, std::clamp(next, point.at, point.at + kLongestLook));
      ++found.samples;
      ++by_compiler[compilers[point.frame]];
      const u32 own = own_frame(frames, point.frame);
      if (own != 0 && !is_library_file(frames[own].file)) ++sites[site_name(frames, own, names)];
    }
  }
  found.site = most_of(sites);
  found.compiler = most_of(by_compiler);
  found.ns = length_of_union(spans);
  for (const Step& step : process.steps.steps) {
    const auto first = std::lower_bound(spans.begin(), spans.end(), Span{step.begin, INT64_MIN});
    found.steps += first != spans.end() && first->first < step.end;
  }
  return found;
}

}  // namespace gputrace
