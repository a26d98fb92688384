// Steps by the marks that PyTorch sets: Optimizer.step, and DataLoader where a batch is asked for.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/loop_period.h"
#include "analysis/steps/optimizer_marks.h"
#include "analysis/steps/step_marks.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// Batches that were asked for, and after how many of them the optimizer made a step.
struct Turn {
  std::vector<std::size_t> batches;  // places of events; some may be others', before the step
  std::size_t optimizer = 0;         // the last one of the turn
};
struct Loop {
  std::vector<Turn> turns;
  std::vector<std::size_t> rest;  // batches after the last step of the optimizer
};

// What was given to the device between two places.
struct Work {
  std::size_t all = 0, launches = 0;
  bool backward = false;  // a backward pass was among it
};

Work work_between(const std::vector<LoopEvent>& events, std::size_t from, std::size_t to) {
  Work work;
  for (std::size_t i = from; i < to; ++i) {
    work.all += events[i].is_work();
    work.launches += events[i].is_launch();
    work.backward = work.backward || events[i].is(LoopMark::Backward);
  }
  return work;
}

Loop read_marks(const std::vector<LoopEvent>& events) {
  Loop loop;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].is(LoopMark::NextBatch)) loop.rest.push_back(i);
    if (!events[i].is(LoopMark::OptimizerStep)) continue;
    if (loop.rest.empty()) {  // one more optimizer, or one step without a new batch
      if (!loop.turns.empty()) loop.turns.back().optimizer = i;
      continue;
    }
    loop.turns.push_back({std::move(loop.rest), i});
    loop.rest.clear();
  }
  return loop;
}

std::size_t usual_count(std::vector<std::size_t> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Batches of a usual step: several where gradients are accumulated.
std::size_t batches_of_a_step(const Loop& loop) {
  std::vector<std::size_t> counts;
  for (const Turn& turn : loop.turns) counts.push_back(turn.batches.size());
  return usual_count(std::move(counts));
}

// What a usual step consists of; launches 0: not known.
struct Usual {
  std::size_t batches = 1, launches = 0;
};

// Launches of a usual turn.
std::size_t launches_of_a_turn(const std::vector<LoopEvent>& events, const Loop& loop) {
  std::vector<std::size_t> counts;
  for (const Turn& turn : loop.turns)
    counts.push_back(work_between(events, turn.batches.front(), turn.optimizer).launches);
  return counts.empty() ? 0 : usual_count(std::move(counts));
}

// When what was given from one place on came to its end: until another place, and by a moment.
Nanos end_within(const std::vector<LoopEvent>& events, std::size_t from, std::size_t until, Nanos latest) {
  Nanos end = events[from].end;
  for (std::size_t i = from + 1; i < until && events[i].begin <= latest; ++i) end = std::max(end, events[i].end);
  return end;
}

// The first `count` batches, behind which the optimizer made no step: an evaluation's, but for those with a backward pass, of which as many are a
// step as are usual. A request after which nothing was given to the device before the next one, or nothing launched, found the end of the data; so did the first and the
// last one where little was launched behind them, for what follows the data (saving, memory of the next epoch).
void add_others(const std::vector<LoopEvent>& events, const std::vector<std::size_t>& batches, std::size_t count,
                std::size_t until, const Usual& usual_step, std::vector<Step>& steps) {
  constexpr std::size_t kPartOfATurn = 8;  // a forward pass alone is more
  std::vector<Work> work;
  std::vector<std::size_t> launches;
  for (std::size_t i = 0; i < count; ++i) {
    work.push_back(work_between(events, batches[i], i + 1 < batches.size() ? batches[i + 1] : until));
    launches.push_back(work.back().launches);
  }
  const std::size_t usual = count > 2 ? usual_count(std::move(launches)) / 2 : 0;
  const std::size_t least = std::max(usual, usual_step.launches / kPartOfATurn);
  Nanos longest = 0;
  std::size_t trained = 0;  // batches of the newest step, where it is one of training
  for (std::size_t i = 0; i < count; ++i) {
    const bool at_an_end = i == 0 || i + 1 == count;
    const bool trains = work[i].backward;
    const bool computes = trains || (work[i].launches >= (at_an_end ? least : std::min<std::size_t>(least, 1)));
    if (work[i].all == 0 || !computes) continue;
    const std::size_t next = i + 1 < batches.size() ? batches[i + 1] : until;
    Step step;
    step.begin = events[batches[i]].begin;
    step.end = next < events.size() ? events[next].begin : events.back().end;
    // A loader that is one batch ahead (Accelerate's) finds the end of its data before the last batch is worked on: what follows
    // that one, to the end of the run, is not its own.
    if (next == events.size() && longest != 0)
      step.end = std::min(step.end, end_within(events, batches[i], next, step.begin + longest + longest / 2));
    longest = std::max(longest, step.end - step.begin);
    step.phase = trains ? RunPhase::Training : RunPhase::Evaluation;
    step.counted = trains;
    const bool goes_on = trains && trained > 0 && trained < usual_step.batches;
    trained = goes_on ? trained + 1 : trains;
    if (goes_on)
      steps.back().end = step.end;
    else
      steps.push_back(step);
  }
}

// The end of what follows the optimizer's step for as long as it usually does.
Nanos end_of_last(const std::vector<LoopEvent>& events, std::size_t optimizer, std::size_t until, Nanos usual_tail) {
  return end_within(events, optimizer, until, events[optimizer].end + usual_tail + usual_tail / 2);
}

MarkedSteps steps_by_batches(const std::vector<LoopEvent>& events, const Loop& loop) {
  MarkedSteps made;
  const Usual usual{batches_of_a_step(loop), launches_of_a_turn(events, loop)};
  std::vector<Nanos> tails;
  for (std::size_t i = 0; i + 1 < loop.turns.size(); ++i)
    tails.push_back(events[loop.turns[i + 1].batches.front()].begin - events[loop.turns[i].optimizer].end);
  std::sort(tails.begin(), tails.end());
  const Nanos tail = tails.empty() ? 0 : tails[tails.size() / 2];
  for (std::size_t i = 0; i < loop.turns.size(); ++i) {
    const Turn& turn = loop.turns[i];
    const std::size_t own = std::min(usual.batches, turn.batches.size()), before = turn.batches.size() - own;
    add_others(events, turn.batches, before, turn.optimizer, usual, made.steps);
    Step step;
    step.begin = events[turn.batches[before]].begin;
    step.phase = RunPhase::Training;
    const bool last = i + 1 == loop.turns.size();
    const std::vector<std::size_t>& next = last ? loop.rest : loop.turns[i + 1].batches;
    const std::size_t until = next.empty() ? events.size() : next.front();
    step.end = next.empty() ? end_of_last(events, turn.optimizer, until, tail) : events[until].begin;
    made.steps.push_back(step);
  }
  add_others(events, loop.rest, loop.rest.size(), events.size(), usual, made.steps);
  return made;
}

MarkedSteps steps_by_optimizer(const std::vector<LoopEvent>& events, const std::vector<u32>& anchors) {
  MarkedSteps made;
  const auto found = turns_around(events, anchors);
  if (!found) return made;
  made.confidence = found->confidence;
  for (const LoopTurn& turn : found->turns) {
    Step step;
    step.begin = turn.begin, step.end = turn.end;
    step.phase = RunPhase::Training;
    made.steps.push_back(step);
  }
  return made;
}

// Of a program that evaluates, or whose optimizer is none of PyTorch's.
MarkedSteps steps_of_batches_alone(const std::vector<LoopEvent>& events, const std::vector<std::size_t>& batches,
                                   const std::string& loader) {
  MarkedSteps made;
  add_others(events, batches, batches.size(), events.size(), {}, made.steps);
  const auto trained = std::count_if(made.steps.begin(), made.steps.end(),
                                     [](const Step& step) { return step.phase == RunPhase::Training; });
  made.evidence = fmt::format("{} batches of {}, and no step of an optimizer", made.steps.size(), loader);
  if (trained > 0)
    made.evidence =
        fmt::format("{} batches of {} with a backward pass, and no step of an optimizer of PyTorch's", trained, loader);
  else
    for (Step& step : made.steps) step.counted = true;  // all that the program does
  return made;
}

}  // namespace

std::optional<MarkedSteps> steps_of_framework(const LoopLog& log, const std::vector<LoopEvent>& events) {
  const OptimizerMarks marks = optimizer_marks(events);
  const std::vector<u32>& anchors = marks.steps;
  const std::size_t batches = static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [](const LoopEvent& event) { return event.is(LoopMark::NextBatch); }));
  const bool skipped = batches < 3 && skips_steps(events, marks);
  if (anchors.size() < 2 && batches < 3 && !skipped) return std::nullopt;
  const Loop loop = read_marks(events);
  MarkedSteps made;
  const bool by_batches = loop.turns.size() * 10 >= anchors.size() * 4 && loop.turns.size() >= 2;
  if (by_batches) {
    made = steps_by_batches(events, loop);
    made.evidence = fmt::format("{} of {}, from the first batch of each ({})",
                                anchors.size() == 1 ? "1 step" : fmt::format("{} steps", anchors.size()), log.optimizer,
                                log.loader);
  } else if (skipped) {
    made = steps_by_optimizer(events, marks.zero_grads);
    made.evidence = fmt::format(
        "{} times zero_grad of an optimizer that made {}: the others were skipped (GradScaler); their begin is where "
        "the "
        "loop's calls begin anew",
        marks.zero_grads.size(), anchors.empty() ? "no step" : counted(anchors.size(), "step"));
  } else if (anchors.size() >= 2) {
    const std::vector<u32> ends = ends_of_turns(events, marks);
    made = steps_by_optimizer(events, ends);
    made.evidence =
        fmt::format("{} steps of {}{}; their begin is where the loop's calls begin anew", anchors.size(), log.optimizer,
                    ends.size() < anchors.size() ? ", two in each turn of the loop, which differ" : "");
  } else {
    made = steps_of_batches_alone(events, loop.rest, log.loader);
  }
  made.source = StepSource::Framework;
  if (made.steps.empty()) return std::nullopt;
  return made;
}

}  // namespace gputrace
