#include "analysis/pass/stack_marks.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gputrace {
namespace {

constexpr std::string_view kGeneration = "transformers/generation/utils.py";
// Functions with a loop that makes a token of each sequence a turn, under the names that they have had. Not among them: assisted decoding, a turn of
// which may make several.
constexpr std::array<std::string_view, 8> kLoops = {"_sample", "_beam_search", "_greedy_search", "_contrastive_search",
                                                    "sample",  "beam_search",  "greedy_search",  "contrastive_search"};

// Functions in which an engine runs its model: vLLM's (tried: 0.33), in the two forms of its model runner, and SGLang's (tried: 0.5).
struct EngineFunction {
  std::string_view name, file;
};
constexpr std::array<EngineFunction, 3> kEngines = {{{"execute_model", "vllm/v1/worker/gpu_model_runner.py"},
                                                     {"execute_model", "vllm/v1/worker/gpu/model_runner.py"},
                                                     {"run_batch", "sglang/srt/managers/scheduler.py"}}};

// What runs a kernel again and again to see which form of it is the fastest.
bool is_trial(const SourceFrame& frame) {
  return frame.file.ends_with("torch/_inductor/runtime/benchmarking.py") ||
         (frame.file.ends_with("triton/runtime/autotuner.py") && frame.function.ends_with("bench"));
}

constexpr u32 kLongestStatement = 20;  // lines: within a statement a call may have a smaller one than its arguments

StackMarks::Place own_place(const SourceFrame& frame) {
  if (frame.native) return {};
  if (is_trial(frame)) return {StackMarks::Kind::Trial, 0};
  if (saves_model(frame)) return {StackMarks::Kind::Save, 0};
  const std::string_view name = std::string_view(frame.function).substr(frame.function.rfind('.') + 1);
  const auto is_this = [&](const EngineFunction& one) { return one.name == name && frame.file.ends_with(one.file); };
  if (std::any_of(kEngines.begin(), kEngines.end(), is_this)) return {StackMarks::Kind::Batch, frame.line};
  if (!frame.file.ends_with(kGeneration)) return {};
  if (name == "_prefill") return {StackMarks::Kind::Prompt, 0};
  if (std::find(kLoops.begin(), kLoops.end(), name) != kLoops.end()) return {StackMarks::Kind::Loop, frame.line};
  return {};
}

}  // namespace

StackMarks::Place StackMarks::find(const std::vector<SourceFrame>& frames, u32 frame) {
  if (known_.size() < frames.size()) known_.resize(frames.size(), Place{Kind::NotKnown, 0});
  std::vector<u32> path;
  u32 at = frame;  // callers have smaller numbers
  for (; at != 0; at = frames[at].parent) {
    if (at >= frames.size() || frames[at].function.empty()) return {Kind::NotKnown, 0};
    if (known_[at].kind != Kind::NotKnown) break;
    path.push_back(at);
  }
  Place place = at == 0 ? Place{} : known_[at];
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const Place own = own_place(frames[*it]);
    if (own.kind != Kind::Outside) place = own;
    known_[*it] = place;
  }
  return place;
}

bool StackMarks::Turn::begins_anew(u32 line) {
  const bool back = last_ != 0 && (line <= first_ || line + kLongestStatement < last_);
  const bool anew = back && went_on_;
  if (first_ == 0 || back) first_ = line, went_on_ = false;
  went_on_ = went_on_ || line > first_;
  last_ = line;
  return anew;
}

StackMarks::Turn::Begins StackMarks::Turn::turn(const Place& place) {
  if (place.kind == Kind::NotKnown || place.kind == Kind::Trial) return Begins::Nothing;
  const bool was_batch = in_batch_, generated = generates_;
  in_batch_ = place.kind == Kind::Batch;
  generates_ = place.kind == Kind::Prompt || place.kind == Kind::Loop;
  if ((in_batch_ && !was_batch) || (generates_ && !generated)) {
    went_on_ = false, first_ = last_ = place.line;
    return in_batch_ ? Begins::Batch : Begins::Prefill;
  }
  if (in_batch_) return begins_anew(place.line) ? Begins::Batch : Begins::Nothing;
  if (!generates_) return generated ? Begins::Outside : was_batch ? Begins::AfterBatch : Begins::Nothing;
  if (place.kind == Kind::Prompt) {  // what was launched before it is none of the loop's
    first_ = last_ = 0;
    return Begins::Nothing;
  }
  return begins_anew(place.line) ? Begins::Token : Begins::Nothing;
}

}  // namespace gputrace
