#include "analysis/steps/run_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestCopies = 8;  // more than usual, and four times as many: saving
constexpr double kShortBreak = 0.05;      // of a usual step: what lies between two steps is nothing of its own

std::string steps_words(std::size_t count) { return count == 1 ? "1 step" : fmt::format("{} steps", count); }

struct Group {
  std::size_t first, last;  // steps, both included
};

// Steps of one phase that follow each other.
std::vector<Group> groups_of(const std::vector<Step>& steps, Nanos longest_break) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool goes_on =
        i != 0 && steps[i].phase == steps[i - 1].phase && steps[i].begin - steps[i - 1].end <= longest_break;
    if (goes_on)
      groups.back().last = i;
    else
      groups.push_back({i, i});
  }
  return groups;
}

// An interpreter's, of calls: what saves a model is marked then.
bool knows_lines(const ProcessTrace& process) {
  return std::any_of(process.lines.frames.begin(), process.lines.frames.end(),
                     [](const SourceFrame& frame) { return !frame.native && !frame.file.empty(); });
}

bool is_saving(const std::vector<SourceFrame>& frames, u32 frame) {
  for (; frame != 0 && frame < frames.size(); frame = frames[frame].parent) {
    if (saves_model(frames[frame])) return true;
  }
  return false;
}

// By the copies that were made for it, or by what samples of the process's own threads found in that time; empty: nothing was copied, and
// most of the samples were not saving, or there are none.
std::string evidence_of_saving(const ProcessTrace& process, Nanos from, Nanos to) {
  u64 copies = 0;
  const auto& events = process.loop_log.events;
  auto event = std::lower_bound(events.begin(), events.end(), from,
                                [](const LoopEvent& a, Nanos time) { return a.begin < time; });
  for (; event != events.end() && event->begin < to; ++event) copies += event->is(LoopMark::Saves);
  if (copies != 0) return fmt::format("between two steps; {} copies to the host to save a model", copies);
  const SampleFacts& samples = process.samples;
  u64 all = 0, saving = 0;
  for (const SampledThread& thread : samples.threads) {
    if (!thread.calls_cuda()) continue;
    auto point = std::lower_bound(thread.points.begin(), thread.points.end(), from,
                                  [](const SamplePoint& a, Nanos time) { return a.at < time; });
    for (; point != thread.points.end() && point->at < to; ++point)
      ++all, saving += is_saving(samples.frames, point->frame);
  }
  if (2 * saving <= all) return {};
  return fmt::format("between two steps; a model was being saved in {} of {} samples", saving, all);
}

// A step makes one token of each sequence.
std::string tokens_words(const StepFacts& facts, const Group& group) {
  std::vector<u64> lengths;
  for (std::size_t i = group.first; i <= group.last; ++i) lengths.push_back(facts.steps[i].length());
  std::sort(lengths.begin(), lengths.end());
  const auto rank = [&](std::size_t percent) {
    return human_nanos(static_cast<Nanos>(lengths[(lengths.size() * percent + 99) / 100 - 1]));
  };
  return fmt::format("{} of each sequence; one takes {} (p50), {} (p99)",
                     lengths.size() == 1 ? "1 more token" : fmt::format("{} more tokens", lengths.size()), rank(50),
                     rank(99));
}

std::string evidence_of(const ProcessTrace& process, const Group& group) {
  const StepFacts& facts = process.steps;
  const std::string steps = steps_words(group.last - group.first + 1);
  switch (facts.steps[group.first].phase) {
    case RunPhase::WarmUp:
      return steps + ", 1.5 times as long as the median or longer";
    case RunPhase::Compilation:
      return steps + " in which machine code was loaded or compiled";
    case RunPhase::Evaluation:
      return steps + (facts.source == StepSource::Nvtx ? " of that name"
                                                       : " without a backward pass or a step of the optimizer");
    case RunPhase::Checkpoint:
      return steps + (knows_lines(process) ? " in which a model was copied to the host to be saved"
                                           : " in which many more copies to the host were made than in others");
    case RunPhase::Prefill:
      if (facts.source != StepSource::Framework) break;
      return group.first == group.last ? "a prompt is taken in, and the first token made"
                                       : steps + ", each takes in a prompt";
    case RunPhase::Decode:
      if (facts.source != StepSource::Framework) break;
      return tokens_words(facts, group);
    default:
      break;
  }
  return steps + ": " + facts.evidence;
}

}  // namespace

void end_before_saving(const LoopLog& log, StepFacts& facts) {
  auto event = log.events.begin();
  for (Step& step : facts.steps) {
    while (event != log.events.end() && event->begin < step.begin) ++event;
    for (; event != log.events.end() && event->begin < step.end; ++event) {
      if (step.phase == RunPhase::Evaluation && event->is(LoopMark::Saves) && event->begin > step.begin)
        step.end = event->begin;
    }
  }
}

void mark_checkpoints(ProcessTrace& process) {
  StepFacts& facts = process.steps;
  struct Copies {
    std::size_t all = 0, saving = 0;
  };
  std::vector<Copies> copies(facts.steps.size());
  std::size_t at = 0;
  for (const LoopEvent& event : process.loop_log.events) {
    while (at < facts.steps.size() && facts.steps[at].end <= event.begin) ++at;
    if (at == facts.steps.size()) break;
    if (event.begin < facts.steps[at].begin) continue;
    copies[at].all += event.kind() == LoopKind::ToHost;
    copies[at].saving += event.is(LoopMark::Saves);
  }
  if (copies.empty() || facts.on_device) return;
  std::vector<Copies> sorted = copies;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end(),
                   [](const Copies& a, const Copies& b) { return a.all < b.all; });
  const std::size_t usual = middle->all;
  const bool lines_are_known = knows_lines(process);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const bool saves =
        lines_are_known ? copies[i].saving != 0 : copies[i].all >= usual + kFewestCopies && copies[i].all >= 4 * usual;
    Step& step = facts.steps[i];
    if (step.phase != RunPhase::Training || !saves) continue;
    step.phase = RunPhase::Checkpoint;
    step.counted = false;
  }
}

std::vector<PhaseSpan> phases_of(const ProcessTrace& process) {
  const StepFacts& facts = process.steps;
  std::vector<PhaseSpan> phases;
  if (!facts.found() || process.end == 0) return phases;
  const Nanos usual = static_cast<Nanos>(statistics_of(facts).median_ns);
  const auto longest_break = static_cast<Nanos>(kShortBreak * static_cast<double>(usual));
  Nanos done = process.begin;
  const auto add = [&](RunPhase phase, Nanos end, std::string evidence) {
    if (end <= done) return;
    phases.push_back({phase, done, end, std::move(evidence)});
    done = end;
  };
  for (const Group& group : groups_of(facts.steps, longest_break)) {
    const Step &first = facts.steps[group.first], &last = facts.steps[group.last];
    if (phases.empty())
      add(RunPhase::StartUp, first.begin, "from the first CUDA call to the first step");
    else if (first.begin - done > longest_break) {
      std::string saving = evidence_of_saving(process, done, first.begin);
      const RunPhase phase = saving.empty() ? RunPhase::Other : RunPhase::Checkpoint;
      add(phase, first.begin, saving.empty() ? "between two steps; other work than theirs" : std::move(saving));
    }
    add(first.phase, last.end, evidence_of(process, group));
  }
  if (process.end - done > longest_break) add(RunPhase::Other, process.end, "after the last step");
  return phases;
}

}  // namespace gputrace
