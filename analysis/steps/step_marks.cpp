#include "analysis/steps/step_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "analysis/steps/loop_period.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestRanges = 3;

using Words = std::initializer_list<std::string_view>;

std::string lower_case(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// These ask of every range and name, of which there are thousands: a regular expression would be made anew each time. All in lower case.
bool has_part(const std::string& name, Words parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// As a word of its own: "eval_3" holds "eval", "retrieval" does not.
bool has_word(const std::string& name, Words words) {
  for (const std::string_view word : words) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || !is_letter(name[at - 1])) && (end == name.size() || !is_letter(name[end]))) return true;
    }
  }
  return false;
}

RunPhase phase_of(const std::string& range) {
  const std::string name = lower_case(range);
  if (has_word(name, {"eval", "evaluation", "valid", "validation", "test"})) return RunPhase::Evaluation;
  if (has_part(name, {"train"})) return RunPhase::Training;
  if (has_part(name, {"prefill"})) return RunPhase::Prefill;
  return has_part(name, {"decode"}) ? RunPhase::Decode : RunPhase::Other;
}

// "Thunk:#name=jit(step)/mul,hlo_op=…#": a mark that XLA or TensorFlow sets itself, for a pass of its compiler or a part of
// what it runs. It has the names of the program's functions in it and is none of their steps: a module's ends when all of it was
// launched.
bool is_of_compiler(const std::string& name) {
  return !name.empty() && name.back() == '#' && name.find(":#") != std::string::npos;
}

// "step 12" and "step 13" are one name.
std::string without_numbers(const std::string& name) {
  std::string bare;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) bare += c;
    if (digit && (bare.empty() || bare.back() != '#')) bare += '#';
  }
  return bare;
}

// Ranges one after the other; one within another is left out.
std::vector<Step> one_after_the_other(std::vector<LoopRange> ranges, const std::vector<std::string>& names) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const LoopRange& a, const LoopRange& b) { return a.begin < b.begin; });
  std::vector<Step> steps;
  for (const LoopRange& range : ranges) {
    if (range.end <= range.begin || (!steps.empty() && range.begin < steps.back().end)) continue;
    Step step;
    step.begin = range.begin, step.end = range.end;
    step.phase = range.name < names.size() ? phase_of(names[range.name]) : RunPhase::Other;
    step.counted = step.phase != RunPhase::Evaluation;
    steps.push_back(step);
  }
  return steps;
}

// Of the thread with most of them.
std::vector<LoopRange> of_one_thread(const std::vector<LoopRange>& ranges) {
  std::map<u32, std::size_t> counts;
  for (const LoopRange& range : ranges) ++counts[range.thread];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<LoopRange> own;
  for (const LoopRange& range : ranges) {
    if (range.thread == most->first) own.push_back(range);
  }
  return own;
}

std::optional<MarkedSteps> make(const LoopLog& log, std::vector<LoopRange> ranges, std::size_t fewest,
                                const std::string& what) {
  if (ranges.size() < fewest) return std::nullopt;
  MarkedSteps made;
  made.source = StepSource::Nvtx;
  made.steps = one_after_the_other(of_one_thread(ranges), log.names);
  if (made.steps.size() < fewest) return std::nullopt;
  made.evidence = fmt::format("{} NVTX ranges {}", made.steps.size(), what);
  if (log.ranges_left_out)
    made.evidence += fmt::format("; {} later ranges were too many to be looked at", log.ranges_left_out);
  return made;
}

template <typename Wanted>
std::optional<MarkedSteps> steps_named(const LoopLog& log, Wanted&& wanted, std::size_t fewest,
                                       const std::string& what) {
  std::vector<bool> is_wanted;
  for (const std::string& name : log.names) is_wanted.push_back(wanted(name));
  std::vector<LoopRange> ranges;
  for (const LoopRange& range : log.ranges) {
    if (is_wanted[range.name]) ranges.push_back(range);
  }
  return make(log, std::move(ranges), fewest, what);
}

// Of the ranges whose names have one of these words those of the name that most have, where they are steps.
std::optional<MarkedSteps> steps_of_words(const LoopLog& log, Words words) {
  std::map<std::string, std::vector<LoopRange>> by_name;
  std::vector<std::string> bare;
  for (const std::string& range : log.names) {
    const std::string name = lower_case(range);
    const bool of_others = has_part(name, {"optimizer", "zero_grad", "scheduler", ".step"});
    bare.push_back(has_word(name, words) && !of_others && !is_of_compiler(range) ? without_numbers(range) : "");
  }
  for (const LoopRange& range : log.ranges) {
    if (!bare[range.name].empty()) by_name[bare[range.name]].push_back(range);
  }
  const std::vector<LoopRange>* most = nullptr;
  const std::string* name = nullptr;
  for (const auto& [own, ranges] : by_name) {
    if (phase_of(own) == RunPhase::Evaluation) continue;
    if (!most || ranges.size() > most->size()) most = &ranges, name = &own;
  }
  if (!most) return std::nullopt;
  return make(log, *most, kFewestRanges, "\"" + *name + "\"");
}

}  // namespace

std::optional<MarkedSteps> steps_of_ranges(const LoopLog& log, const std::string& pattern) {
  const std::regex regex(pattern);
  return steps_named(
      log, [&](const std::string& name) { return std::regex_search(name, regex); }, 1, "whose name holds " + pattern);
}

std::optional<MarkedSteps> steps_of_profiler_step(const LoopLog& log) {
  return steps_named(
      log, [](const std::string& name) { return name.rfind("ProfilerStep#", 0) == 0; }, 1, "ProfilerStep#");
}

std::optional<MarkedSteps> steps_of_usual_ranges(const LoopLog& log) {
  if (auto made = steps_of_words(log, {"step", "steps"})) return made;
  if (auto made = steps_of_words(log, {"iter", "iteration"})) return made;
  return steps_of_words(log, {"train", "training", "batch"});
}

std::optional<MarkedSteps> steps_of_profiler_api(const LoopLog& log) {
  if (log.profiler.size() < kFewestRanges) return std::nullopt;
  MarkedSteps made;
  made.source = StepSource::ProfilerApi;
  made.steps = one_after_the_other(log.profiler, {});
  made.evidence = fmt::format("{} times between cudaProfilerStart and cudaProfilerStop", made.steps.size());
  if (made.steps.size() < kFewestRanges) return std::nullopt;
  return made;
}

}  // namespace gputrace
