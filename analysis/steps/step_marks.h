// Steps that the program or its framework marks itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

struct MarkedSteps {
  StepSource source = StepSource::None;
  double confidence = 1;
  std::string evidence;
  std::vector<Step> steps;
  std::optional<u32> thread;               // whose steps they are, where others have steps beside it
  u64 other_threads = 0, other_turns = 0;  // StepFacts
};

// NVTX ranges whose name holds that regular expression (ECMAScript); nothing: none does. Throws std::regex_error.
std::optional<MarkedSteps> steps_of_ranges(const LoopLog& log, const std::string& pattern);

// NVTX ranges by the names that are usual for steps: ProfilerStep#7, step 7, iteration, train, batch.
std::optional<MarkedSteps> steps_of_profiler_step(const LoopLog& log);
std::optional<MarkedSteps> steps_of_usual_ranges(const LoopLog& log);

// PyTorch's Optimizer.step and DataLoader. With both: from the request of the first batch after a step of the optimizer to that
// of the next; of batches that no step of the optimizer follows those with a backward pass are training (a scaler skipped its step,
// or the optimizer is none of PyTorch's), the others evaluation. `events` in the order of their begins.
std::optional<MarkedSteps> steps_of_framework(const LoopLog& log, const std::vector<LoopEvent>& events);

// Tokens of Hugging Face transformers' generate(): the first turn of each call takes in the prompt (prefill, which does not count), each later
// one makes one more token of each sequence. Confidence is 1: the stacks of launches say it.
std::optional<MarkedSteps> steps_of_generation(const std::vector<LoopEvent>& events);

// Batches of an engine that serves requests (vLLM, SGLang): from where it begins to run the model to where it does so again; a pause longer than the median of these, and
// not within that function (no request was under way), is between two steps; calls of it that launch nothing are none. What each holds of prompts and of tokens the launches do not say. Confidence is 1.
std::optional<MarkedSteps> steps_of_engine(const std::vector<LoopEvent>& events);

// Executions of the XLA module that takes most time, where there are five or more and they go on for half of the time in which modules
// ran: for programs whose launches have no period.
std::optional<MarkedSteps> steps_of_modules(const LoopLog& log);

// cudaProfilerStart … cudaProfilerStop, several times.
std::optional<MarkedSteps> steps_of_profiler_api(const LoopLog& log);

}  // namespace gputrace
