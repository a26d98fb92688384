#include "analysis/run/compiling.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "analysis/facts/sample_facts.h"
#include "analysis/lines/callers_first.h"
#include "analysis/lines/sites.h"

namespace gputrace {
namespace {

// Files that are run to compile only, and functions (a part of their names) of those that do more.
struct CompilerFile {
  const char* file;
  const char* function;
  const char* compiler;
};
constexpr std::array<CompilerFile, 15> kCompilerFiles = {{
    {"torch/_dynamo/convert_frame.py", "", "torch.compile"},
    {"torch/_inductor/compile_fx.py", "compile", "torch.compile"},
    {"torch/_inductor/async_compile.py", "", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "compile", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "benchmark", "torch.compile"},
    {"torch/_inductor/runtime/triton_heuristics.py", "autotune", "torch.compile"},
    {"triton/compiler/compiler.py", "", "Triton"},
    {"triton/runtime/build.py", "", "Triton"},  // what launches its kernels, with a C compiler
    {"triton/runtime/autotuner.py", "bench", "Triton"},
    {"jax/_src/compiler.py", "", "JAX"},
    {"jax/_src/interpreters/mlir.py", "", "JAX"},
    {"numba/core/compiler.py", "", "Numba"},
    {"numba/cuda/compiler.py", "", "Numba"},
    {"cupy/cuda/compiler.py", "compile_using", "CuPy"},
    {"torch/utils/cpp_extension.py", "_run_ninja_build", "torch.utils.cpp_extension"},
}};

const char* compiler_of(const SourceFrame& frame) {
  if (frame.function == "<module>") return nullptr;  // it is imported
  for (const CompilerFile& known : kCompilerFiles) {
    if (frame.file.ends_with(known.file) && frame.function.find(known.function) != std::string::npos)
      return known.compiler;
  }
  return nullptr;
}

// By frame: the outermost compiler among it and those that called it; nullptr: none.
std::vector<const char*> compilers_of(const SourceFrames& frames) {
  std::vector<const char*> found(frames.size(), nullptr);
  for_callers_first(frames, [&](u32 frame, u32 caller) {
    found[frame] = found[caller] ? found[caller] : compiler_of(frames[frame]);
  });
  return found;
}

bool earlier(const CompilingSpan& a, const CompilingSpan& b) { return a.begin < b.begin; }

// Of spans in order.
u64 length_of_union(const std::vector<CompilingSpan>& spans) {
  u64 sum = 0;
  Nanos until = INT64_MIN;
  for (const CompilingSpan& span : spans) {
    if (span.end > until) sum += static_cast<u64>(span.end - std::max(span.begin, until));
    until = std::max(until, span.end);
  }
  return sum;
}

// When a thread was in XLA's compiler, in the order of the begins: ranges of one thread do not overlap.
std::map<u32, std::vector<CompilingSpan>> xla_spans_by_thread(const std::vector<XlaCompiling>& ranges) {
  std::map<u32, std::vector<CompilingSpan>> spans;
  for (const XlaCompiling& range : ranges) spans[range.thread].push_back({range.begin, range.end, false});
  for (auto& [thread, of_thread] : spans) std::sort(of_thread.begin(), of_thread.end(), earlier);
  return spans;
}

bool holds(const std::vector<CompilingSpan>& spans, Nanos at) {
  const auto after = std::upper_bound(spans.begin(), spans.end(), CompilingSpan{at, 0, false}, earlier);
  return after != spans.begin() && at < std::prev(after)->end;
}

// A sample that found a thread of the process in a compiler, and what it stands for.
struct CompilingLook {
  CompilingSpan span;
  u32 frame;
  const char* compiler;  // nullptr: only XLA says that it compiles
};

std::vector<CompilingLook> looks_of(const ProcessTrace& process) {
  const std::vector<const char*> compilers = compilers_of(process.samples.frames);
  std::vector<CompilingLook> looks;
  if (process.xla_compiling.empty() &&
      std::none_of(compilers.begin(), compilers.end(), [](const char* name) { return name != nullptr; }))
    return looks;
  auto xla = xla_spans_by_thread(process.xla_compiling);
  for (const SampledThread& series : process.samples.threads) {
    if (!series.calls_cuda()) continue;
    const std::vector<CompilingSpan>& of_thread = xla[series.thread];
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const SamplePoint& point = series.points[i];
      const char* const compiler = point.frame < compilers.size() ? compilers[point.frame] : nullptr;
      if (!compiler && !holds(of_thread, point.at)) continue;
      const Nanos next = i + 1 < series.points.size() ? series.points[i + 1].at : process.end;
      looks.push_back({{point.at, std::clamp(next, point.at, point.at + kLongestLook), true}, point.frame, compiler});
    }
  }
  return looks;
}

std::vector<CompilingSpan> xla_spans(const std::vector<XlaCompiling>& ranges) {
  std::vector<CompilingSpan> spans;
  spans.reserve(ranges.size());
  for (const XlaCompiling& range : ranges) spans.push_back({range.begin, range.end, false});
  std::sort(spans.begin(), spans.end(), earlier);
  return spans;
}

std::vector<CompilingSpan> spans_of(const std::vector<CompilingLook>& looks, const ProcessTrace& process) {
  std::vector<CompilingSpan> spans = xla_spans(process.xla_compiling);
  for (const CompilingLook& look : looks) {
    if (look.compiler) spans.push_back(look.span);
  }
  std::sort(spans.begin(), spans.end(), earlier);
  return spans;
}

// What it compiles once is what it needs.
void find_modules(const std::vector<XlaCompiling>& ranges, Compiling& found) {
  struct Module {
    u64 times = 0, again_ns = 0;
  };
  std::map<std::string, Module> modules;
  std::vector<CompilingSpan> again;
  for (const XlaCompiling& range : ranges) {
    Module& module = modules[range.module];
    if (module.times++ == 0 || range.module.empty()) continue;
    module.again_ns += static_cast<u64>(range.end - range.begin);
    again.push_back({range.begin, range.end, false});
  }
  std::sort(again.begin(), again.end(), earlier);
  found.again_ns = length_of_union(again);
  u64 most = 0;
  for (const auto& [name, module] : modules) {
    if (module.again_ns <= most) continue;
    most = module.again_ns;
    found.module = name, found.module_times = module.times;
  }
}

template <typename Key>
Key most_of(const std::map<Key, u64>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Key{} : most->first;
}

}  // namespace

std::vector<CompilingSpan> compiling_spans(const ProcessTrace& process) { return spans_of(looks_of(process), process); }

Compiling compiling_of(const ProcessTrace& process) {
  const std::vector<CompilingLook> looks = looks_of(process);
  const std::vector<CompilingSpan> spans = spans_of(looks, process);
  Compiling found;
  found.of = process.steps.steps.size();
  if (spans.empty()) return found;
  const SourceFrames& frames = process.samples.frames;
  const FileNames names(process);
  std::map<std::string, u64> sites, by_compiler;
  for (const CompilingLook& look : looks) {
    ++found.samples;
    if (look.compiler) ++by_compiler[look.compiler];
    const u32 own = own_frame(frames, look.frame);
    if (own != 0 && !is_library_file(frames[own])) ++sites[site_name(frames, own, names)];
  }
  found.site = most_of(sites);
  found.compiler = by_compiler.empty() ? "XLA" : most_of(by_compiler);
  found.ns = length_of_union(spans);
  found.xla_ns = length_of_union(xla_spans(process.xla_compiling));
  find_modules(process.xla_compiling, found);
  for (const Step& step : process.steps.steps) {
    const auto first = std::lower_bound(spans.begin(), spans.end(), CompilingSpan{step.begin, 0, false}, earlier);
    found.steps += first != spans.end() && first->begin < step.end;
  }
  return found;
}

}  // namespace gputrace
