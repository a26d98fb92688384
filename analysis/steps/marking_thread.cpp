#include "analysis/steps/marking_thread.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace gputrace {
namespace {

constexpr u64 kFewest = 4;  // marks of a thread; fewer are no loop

std::map<u32, u64> marks_by_thread(const std::vector<LoopEvent>& events, LoopMark mark) {
  std::map<u32, u64> marks;
  for (const LoopEvent& event : events) {
    if (event.is(mark)) ++marks[event.thread];
  }
  std::erase_if(marks, [](const auto& each) { return each.second < kFewest; });
  return marks;
}

}  // namespace

std::optional<MarkingThread> marking_thread(const std::vector<LoopEvent>& events) {
  std::map<u32, u64> marks = marks_by_thread(events, LoopMark::OptimizerStep);
  if (marks.empty()) marks = marks_by_thread(events, LoopMark::Token);
  if (marks.size() < 2) return std::nullopt;
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
