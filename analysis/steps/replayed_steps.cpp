#include "analysis/steps/replayed_steps.h"

#include <algorithm>
#include <map>

namespace gputrace {
namespace {

// The place behind the last step of the optimizer, where that gave nothing to the device; 0: it did.
std::size_t end_of_captured(const std::vector<LoopEvent>& events, std::size_t& marks) {
  std::size_t end = 0;
  bool empty = false, captured = false;
  Nanos worked = 0;  // begin of the newest work: what begins with the mark may stand before it
  marks = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const LoopEvent& event = events[i];
    if (event.is_work()) empty = false, worked = event.begin;
    if (event.is(LoopMark::OptimizerBegins)) empty = worked != event.begin;
    if (!event.is(LoopMark::OptimizerStep)) continue;
    captured = empty, end = i + 1;
    ++marks;
  }
  return captured ? end : 0;
}

struct Replays {
  u64 launches = 0;
  std::size_t first = 0;  // place of the first launch
  bool before = false;    // launched before the step was captured: it cannot hold that
};

// Of the graphs that come about as often as any, the last of a turn: where forward and backward pass have one of their own.
std::optional<u32> graph_of_steps(const std::map<u32, Replays>& graphs) {
  constexpr u64 kOf = 5, kAsOften = 4;
  u64 most = 0;
  for (const auto& [symbol, graph] : graphs)
    if (!graph.before) most = std::max(most, graph.launches);
  std::optional<u32> found;
  std::size_t last = 0;
  for (const auto& [symbol, graph] : graphs) {
    if (graph.before || kOf * graph.launches < kAsOften * most || (found && graph.first < last)) continue;
    found = symbol, last = graph.first;
  }
  return found;
}

}  // namespace

std::optional<ReplayedSteps> replayed_steps(const std::vector<LoopEvent>& events) {
  std::size_t marks = 0;
  const std::size_t from = end_of_captured(events, marks);
  if (from == 0) return std::nullopt;
  std::size_t begin = from - 1;
  while (begin > 0 && !events[begin].is(LoopMark::OptimizerBegins)) --begin;
  std::map<u32, Replays> graphs;  // by symbol
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind() != LoopKind::Graph) continue;
    Replays& graph = graphs[events[i].symbol];
    if (graph.launches++ == 0) graph.first = i, graph.before = i < from;
  }
  const std::optional<u32> symbol = graph_of_steps(graphs);
  if (!symbol || graphs[*symbol].launches <= marks) return std::nullopt;
  ReplayedSteps made;
  made.replays = graphs[*symbol].launches;
  made.first = events[graphs[*symbol].first].begin;
  made.events.reserve(events.size() + 2 * made.replays);
  const auto mark = [&made](LoopMark what, Nanos at, u32 thread) {
    made.events.push_back({at, at, loop_symbol(what), thread});
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const LoopEvent& event = events[i];
    if (i == begin || i + 1 == from) continue;  // what was captured is no step
    const bool is_step = event.symbol == *symbol;
    if (is_step) mark(LoopMark::OptimizerBegins, event.begin, event.thread);
    made.events.push_back(event);
    if (is_step) mark(LoopMark::OptimizerStep, event.end, event.thread);
  }
  const auto earlier = [](const LoopEvent& a, const LoopEvent& b) { return a.begin < b.begin; };
  if (!std::is_sorted(made.events.begin(), made.events.end(), earlier))
    std::stable_sort(made.events.begin(), made.events.end(), earlier);
  return made;
}

}  // namespace gputrace
