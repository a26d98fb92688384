// Steps of a program that generates: a token a step.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/step_marks.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestTokens = 2;

bool says(const LoopEvent& event, LoopMark mark) { return event.symbol == loop_symbol(mark); }

}  // namespace

std::optional<MarkedSteps> steps_of_generation(const std::vector<LoopEvent>& events) {
  MarkedSteps made;
  std::size_t prompts = 0, tokens = 0;
  const LoopEvent* open = nullptr;  // the mark of the turn that is under way
  Nanos end = 0;                    // of its newest event
  const auto close = [&](Nanos at) {
    if (!open) return;
    Step step;
    step.begin = open->begin, step.end = std::max(at, open->begin + 1);
    step.phase = says(*open, LoopMark::Prefill) ? RunPhase::Prefill : RunPhase::Decode;
    step.counted = step.phase == RunPhase::Decode;
    made.steps.push_back(step);
    open = nullptr;
  };
  for (const LoopEvent& event : events) {
    const bool prefill = says(event, LoopMark::Prefill), token = says(event, LoopMark::Token);
    if (open && event.thread != open->thread) continue;  // of several threads that generate the first one counts
    if (token) close(event.begin);
    if (prefill || says(event, LoopMark::GenerationEnds)) close(end);
    if (prefill || token) open = &event, prompts += prefill, tokens += token;
    end = std::max(event.end, event.begin);
  }
  close(end);
  if (tokens < kFewestTokens) return std::nullopt;
  made.source = StepSource::Framework;
  made.evidence =
      fmt::format("{} of transformers' generate() took in {} and made {} more tokens of each sequence, one a step",
                  prompts == 1 ? "1 call" : fmt::format("{} calls", prompts),
                  prompts == 1 ? "its prompt" : "their prompts", tokens);
  return made;
}

}  // namespace gputrace
