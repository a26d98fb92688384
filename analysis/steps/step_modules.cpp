// Steps of programs on XLA (JAX, TensorFlow's compiled functions) whose turns launch different things, as where each shape is compiled
// anew: the executions of the module that takes most time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/steps/step_marks.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestExecutions = 5;
constexpr double kLeastShare = 0.5;  // of the time in which modules ran: initial values are made by modules too
constexpr double kConfidence = 0.6;

// "XlaModule:#hlo_module=jit_step,program_id=3#" → "jit_step"; empty: another range.
std::string_view module_of(std::string_view name) {
  constexpr std::string_view kKind = "XlaModule:#", kKey = "hlo_module=";
  if (name.substr(0, kKind.size()) != kKind) return {};
  const std::size_t from = name.find(kKey);
  if (from == std::string_view::npos) return {};
  name.remove_prefix(from + kKey.size());
  return xla_function(name.substr(0, name.find_first_of(",#")));
}

bool is_compiler(std::string_view name) { return name.substr(0, 12) == "XlaCompile:#"; }

struct Executions {
  std::vector<const LoopRange*> ranges;
  Nanos total = 0;
};

}  // namespace

std::optional<MarkedSteps> steps_of_modules(const LoopLog& log) {
  std::map<std::string_view, Executions> modules;
  std::map<u32, Nanos> compiles_until;  // by thread: what the autotuner tries is no turn of the program's
  Nanos begin = 0, end = 0;
  for (const LoopRange& range : log.ranges) {
    if (range.end == 0 || range.name >= log.names.size()) continue;
    Nanos& until = compiles_until[range.thread];
    if (is_compiler(log.names[range.name])) until = std::max(until, range.end);
    const std::string_view module = module_of(log.names[range.name]);
    if (module.empty() || range.begin < until) continue;
    Executions& of = modules[module];
    of.ranges.push_back(&range);
    of.total += range.end - range.begin;
    begin = end ? std::min(begin, range.begin) : range.begin;
    end = std::max(end, range.end);
  }
  const auto most = std::max_element(modules.begin(), modules.end(),
                                     [](const auto& a, const auto& b) { return a.second.total < b.second.total; });
  if (most == modules.end() || most->second.ranges.size() < kFewestExecutions) return std::nullopt;
  std::vector<const LoopRange*>& turns = most->second.ranges;
  std::sort(turns.begin(), turns.end(), [](const LoopRange* a, const LoopRange* b) { return a->begin < b->begin; });
  if (static_cast<double>(turns.back()->end - turns.front()->begin) < kLeastShare * static_cast<double>(end - begin))
    return std::nullopt;
  MarkedSteps made;
  made.source = StepSource::Inferred;
  made.confidence = kConfidence;
  made.evidence =
      fmt::format("{} executions of XLA's module {}, which takes most of the modules' time", turns.size(), most->first);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Step step;
    step.begin = turns[i]->begin;
    step.end = i + 1 < turns.size() ? turns[i + 1]->begin : turns[i]->end;
    if (step.end > step.begin) made.steps.push_back(step);
  }
  return made;
}

}  // namespace gputrace
