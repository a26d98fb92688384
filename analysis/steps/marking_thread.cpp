#include "analysis/steps/marking_thread.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "analysis/steps/optimizer_marks.h"

namespace gputrace {
namespace {

constexpr u64 kFewest = 4;  // marks of a thread; fewer are no loop

void leave_out_few(std::map<u32, u64>& marks) {
  std::erase_if(marks, [](const auto& each) { return each.second < kFewest; });
}

// Steps of optimizers by thread, else tokens.
std::map<u32, u64> marks_by_thread(const std::vector<LoopEvent>& events) {
  std::map<u32, u64> steps, tokens;
  for (const u32 behind : optimizer_marks(events).steps) ++steps[events[behind - 1].thread];
  leave_out_few(steps);
  if (!steps.empty()) return steps;
  for (const LoopEvent& event : events) {
    if (event.is(LoopMark::Token)) ++tokens[event.thread];
  }
  leave_out_few(tokens);
  return tokens;
}

// Whether they launch beside each other. Threads of a pool to which one loop is handed over take turns: at most two changes to a mark.
bool are_beside_each_other(const std::vector<LoopEvent>& events, const std::map<u32, u64>& marks) {
  constexpr u64 kChangesOfATurn = 2;
  u64 changes = 0, all = 0;
  std::optional<u32> before;
  for (const LoopEvent& event : events) {
    if (!event.is_launch() || !marks.contains(event.thread)) continue;
    changes += before && *before != event.thread;
    before = event.thread;
  }
  for (const auto& [thread, count] : marks) all += count;
  return changes > kChangesOfATurn * all;
}

}  // namespace

std::optional<MarkingThread> marking_thread(const std::vector<LoopEvent>& events) {
  const std::map<u32, u64> marks = marks_by_thread(events);
  if (marks.size() < 2 || !are_beside_each_other(events, marks)) return std::nullopt;
  const auto most =
      std::max_element(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  MarkingThread found;
  found.thread = most->first;
  found.other_threads = marks.size() - 1;
  for (const auto& [thread, count] : marks) found.other_turns += thread == found.thread ? 0 : count;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found.events),
               [&found](const LoopEvent& event) { return event.thread == found.thread; });
  return found;
}

}  // namespace gputrace
