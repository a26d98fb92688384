// Steps of a program that generates: a token a step, or a batch of an engine.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/step_marks.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestTokens = 2, kFewestBatches = 2;

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

std::optional<MarkedSteps> steps_of_engine(const std::vector<LoopEvent>& events) {
  const auto is_mark = [](const LoopEvent& event) { return says(event, LoopMark::EngineBatch); };
  const auto first = std::find_if(events.begin(), events.end(), is_mark);
  if (first == events.end()) return std::nullopt;
  std::vector<Nanos> begins, turns;
  for (auto event = first; event != events.end(); ++event)
    if (event->thread == first->thread && is_mark(*event)) begins.push_back(event->begin);
  if (begins.size() < kFewestBatches) return std::nullopt;
  for (std::size_t i = 1; i < begins.size(); ++i) turns.push_back(begins[i] - begins[i - 1]);
  const auto middle = turns.begin() + static_cast<std::ptrdiff_t>(turns.size() / 2);
  std::nth_element(turns.begin(), middle, turns.end());
  const Nanos longest_pause = *middle;
  MarkedSteps made;
  auto event = first;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const bool is_last = i + 1 == begins.size();
    Step step;
    step.begin = begins[i], step.end = begins[i] + 1;
    bool within = true, ran = false;
    for (; event != events.end() && (is_last || event->begin < begins[i + 1]); ++event) {
      if (event->thread != first->thread) continue;
      if (says(*event, LoopMark::EngineBatchEnds)) within = false;
      const bool after_pause = event->begin - step.end > longest_pause;
      if (after_pause && !within) continue;
      if (after_pause && !ran) step.begin = event->begin;  // the call before ran nothing
      ran = ran || event->kind() == LoopKind::Kernel || event->kind() == LoopKind::Graph;
      step.end = std::max(step.end, event->end);
    }
    if (!is_last && begins[i + 1] - step.end <= longest_pause) step.end = begins[i + 1];
    if (ran) made.steps.push_back(step);
  }
  if (made.steps.size() < kFewestBatches) return std::nullopt;
  made.source = StepSource::Framework;
  made.evidence = fmt::format("the engine ran its model {} times, each for all requests under way", made.steps.size());
  return made;
}

}  // namespace gputrace
