#include "analysis/steps/optimizer_marks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace gputrace {
namespace {

template <typename Value>
Value median_value(std::vector<Value> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// How many times gradients were set to zero and made: before each step since the one before it, and last those behind the last step that were set to
// zero again.
std::vector<std::size_t> passes_of_steps(const std::vector<LoopEvent>& events, const OptimizerMarks& marks) {
  std::vector<std::size_t> passes(1);
  auto zero = marks.zero_grads.begin();
  auto step = marks.steps.begin();
  bool backward = false;
  for (u32 i = 0; i < events.size(); ++i) {
    backward = backward || events[i].is(LoopMark::Backward);
    const bool zeroes = zero != marks.zero_grads.end() && *zero == i + 1;
    const bool steps = step != marks.steps.end() && *step == i + 1;
    if (!zeroes && !steps) continue;
    passes.back() += std::exchange(backward, false);
    if (zeroes) ++zero;
    if (steps) ++step, passes.push_back(0);
  }
  return passes;
}

bool takes_several_passes(std::span<const std::size_t> passes) {
  constexpr std::size_t kFewest = 4;  // steps; fewer may have been skipped in turn by chance
  if (passes.size() < kFewest) return false;
  const std::size_t usual = median_value(std::vector(passes.begin(), passes.end()));
  const auto alike = static_cast<std::size_t>(std::count(passes.begin(), passes.end(), usual));
  return usual > 1 && alike * 10 >= passes.size() * 8;
}

// What was launched between two places, sorted.
std::vector<u32> launched(const std::vector<LoopEvent>& events, std::size_t from, std::size_t to) {
  std::vector<u32> symbols;
  for (std::size_t i = from; i < to; ++i)
    if (events[i].is_launch()) symbols.push_back(events[i].symbol);
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

// How much of the larger one both hold.
double likeness(const std::vector<u32>& a, const std::vector<u32>& b) {
  std::vector<u32> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  const std::size_t most = std::max(a.size(), b.size());
  return most ? static_cast<double>(common.size()) / static_cast<double>(most) : 1;
}

}  // namespace

OptimizerMarks optimizer_marks(const std::vector<LoopEvent>& events) {
  OptimizerMarks marks;
  std::map<u32, unsigned> depths;  // by thread
  u32 behind = 0;
  for (const LoopEvent& event : events) {
    ++behind;
    if (event.kind() != LoopKind::Mark) continue;  // nearly all of them
    if (event.is(LoopMark::OptimizerBegins)) ++depths[event.thread];
    if (event.is(LoopMark::OptimizerStep)) {
      unsigned& depth = depths[event.thread];
      if (depth > 0) --depth;  // else its begin is not in the trace
      if (depth == 0) marks.steps.push_back(behind);
    }
    if (!event.is(LoopMark::ZeroGrad)) continue;
    if (depths[event.thread] == 0)
      marks.zero_grads.push_back(behind);
    else
      marks.closures = true;
  }
  return marks;
}

bool skips_steps(const std::vector<LoopEvent>& events, const OptimizerMarks& marks) {
  if (marks.zero_grads.size() < 2) return false;
  if (marks.steps.empty()) return true;
  const std::vector<std::size_t> passes = passes_of_steps(events, marks);
  return !takes_several_passes(std::span(passes).first(marks.steps.size())) &&
         std::accumulate(passes.begin(), passes.end(), std::size_t{0}) > marks.steps.size();
}

std::vector<u32> ends_of_turns(const std::vector<LoopEvent>& events, const OptimizerMarks& marks) {
  constexpr std::size_t kFewest = 6;
  constexpr double kOther = 0.8, kSame = 0.95;
  const std::vector<u32>& steps = marks.steps;
  if (steps.size() < kFewest || marks.closures) return steps;
  std::vector<double> next, next_but_one;
  std::vector<u32> before_last, last, own;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    own = launched(events, i == 0 ? 0 : steps[i - 1], steps[i]);
    if (i > 1) next.push_back(likeness(last, own));  // before the first lies what the program began with
    if (i > 2) next_but_one.push_back(likeness(before_last, own));
    before_last.swap(last);
    last.swap(own);
  }
  if (median_value(next) > kOther || median_value(next_but_one) < kSame) return steps;
  std::vector<u32> ends;
  for (std::size_t i = 1; i < steps.size(); i += 2) ends.push_back(steps[i]);
  return ends;
}

}  // namespace gputrace
