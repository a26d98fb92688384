#include "analysis/pass/generation.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gputrace {
namespace {

constexpr std::string_view kFile = "transformers/generation/utils.py";
// Functions with a loop that makes a token of each sequence a turn, under the names that they have had. Not among them: assisted decoding, a turn of
// which may make several.
constexpr std::array<std::string_view, 8> kLoops = {"_sample", "_beam_search", "_greedy_search", "_contrastive_search",
                                                    "sample",  "beam_search",  "greedy_search",  "contrastive_search"};

// What runs a kernel again and again to see which form of it is the fastest.
bool is_trial(const SourceFrame& frame) {
  return frame.file.ends_with("torch/_inductor/runtime/benchmarking.py") ||
         (frame.file.ends_with("triton/runtime/autotuner.py") && frame.function.ends_with("bench"));
}

constexpr u32 kLongestStatement = 20;  // lines: within a statement a call may have a smaller one than its arguments

Generation::Place own_place(const SourceFrame& frame) {
  if (frame.native) return {};
  if (is_trial(frame)) return {Generation::Kind::Trial, 0};
  if (!frame.file.ends_with(kFile)) return {};
  const std::string_view name = std::string_view(frame.function).substr(frame.function.rfind('.') + 1);
  if (name == "_prefill") return {Generation::Kind::Prompt, 0};
  if (std::find(kLoops.begin(), kLoops.end(), name) != kLoops.end()) return {Generation::Kind::Loop, frame.line};
  return {};
}

}  // namespace

Generation::Place Generation::place_of(const std::vector<SourceFrame>& frames, u32 frame) {
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

Generation::Turn::Begins Generation::Turn::next(const Place& place) {
  if (place.kind == Kind::NotKnown || place.kind == Kind::Trial) return Begins::Nothing;
  if (place.kind == Kind::Outside) {
    const bool left = within_;
    within_ = false;
    return left ? Begins::Outside : Begins::Nothing;
  }
  if (!within_) {
    within_ = true, went_on_ = false, first_ = last_ = place.line;
    return Begins::Prefill;
  }
  if (place.kind == Kind::Prompt) {  // what was launched before it is none of the loop's
    first_ = last_ = 0;
    return Begins::Nothing;
  }
  const bool back = last_ != 0 && (place.line <= first_ || place.line + kLongestStatement < last_);
  const bool anew = back && went_on_;
  if (first_ == 0 || back) first_ = place.line, went_on_ = false;
  went_on_ = went_on_ || place.line > first_;
  last_ = place.line;
  return anew ? Begins::Token : Begins::Nothing;
}

}  // namespace gputrace
