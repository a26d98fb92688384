#include "analysis/steps/step_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/compiling.h"

namespace gputrace {
namespace {

// The highest rank first.
constexpr StepCategory kRanked[] = {StepCategory::Compute16,  StepCategory::Compute32,      StepCategory::ComputeOther,
                                    StepCategory::Output,     StepCategory::DeviceToDevice, StepCategory::Input,
                                    StepCategory::Collective, StepCategory::Other,          StepCategory::Launch,
                                    StepCategory::Input,      StepCategory::Compilation,    StepCategory::Host};
constexpr unsigned kRanks = std::size(kRanked);
enum Rank : u8 {
  kCompute16,
  kCompute32,
  kComputeOther,
  kOutput,
  kOnDevice,
  kWaitsForInput,
  kCollective,
  kUnknown,
  kLaunch,
  kInput,
  kCompilation,
  kHost
};

class Ranking {
 public:
  explicit Ranking(const ProcessTrace& process) {
    for (u32 kernel = 0; kernel < process.kernels.size(); ++kernel) {
      const std::string precision = tensor_core_verdict(process, kernel, nullptr).precision;
      kernels_.push_back(precision == "fp16" || precision == "bf16"   ? kCompute16
                         : precision == "fp32" || precision == "tf32" ? kCompute32
                                                                      : kComputeOther);
    }
    for (const CallFacts& call : process.calls) {
      if (call.id >= copies_.size()) copies_.resize(call.id + 1u, kHost);
      if (call.name.find("HtoD") != std::string::npos) copies_[call.id] = kInput;
      if (call.name.find("DtoH") != std::string::npos) copies_[call.id] = kOutput;
    }
  }

  Rank of(const ActivitySpan& span) const {
    switch (span.activity()) {
      case Activity::Kernel:
        return span.number() < kernels_.size() ? kernels_[span.number()] : kComputeOther;
      case Activity::ToHost:
        return kOutput;
      case Activity::OnDevice:
        return kOnDevice;
      case Activity::InputWait:
        return kWaitsForInput;
      case Activity::Collective:
        return kCollective;
      case Activity::Unknown:
        return kUnknown;
      case Activity::Launch:
        return kLaunch;
      case Activity::ToDevice:
        return kInput;
      case Activity::Compilation:
        return kCompilation;
      case Activity::Host:
        return span.number() < copies_.size() ? copies_[span.number()] : kHost;
    }
    return kUnknown;
  }

 private:
  std::vector<Rank> kernels_, copies_;
};

struct Border {
  Nanos at;
  Rank rank;
  bool begins;
};

// What a sample found to compile had ended, at the latest, when the program launched again. (An autotuner launches too: then less
// is told as compiling than is.)
Nanos until_next_launch(const ProcessTrace& process, const CompilingSpan& span) {
  const auto& events = process.loop_log.events;  // in the order of their begins
  const auto next = std::upper_bound(events.begin(), events.end(), span.begin,
                                     [](Nanos time, const LoopEvent& event) { return time < event.begin; });
  return next == events.end() ? span.end : std::min(span.end, next->begin);
}

std::vector<Border> borders_of(const ProcessTrace& process, const Ranking& ranking) {
  std::vector<Border> borders;
  borders.reserve(process.activities.spans.size() * 2);
  const auto add = [&](Nanos begin, Nanos end, Rank rank) {
    borders.push_back({begin, rank, true});
    borders.push_back({end, rank, false});
  };
  process.activities.spans.for_each([&](const ActivitySpan& span) { add(span.begin, span.end(), ranking.of(span)); });
  for (const LoopEvent& event : process.loop_log.events) {
    if (event.is(LoopMark::NextBatch)) add(event.begin, event.end, kWaitsForInput);
  }
  for (const CompilingSpan& span : compiling_spans(process))
    add(span.begin, span.is_sampled ? until_next_launch(process, span) : span.end, kCompilation);
  std::sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });
  return borders;
}

class Sweep {
 public:
  explicit Sweep(std::vector<Step>& steps) : steps_(steps) {}

  // From the last border to `at` nothing changed.
  void until(Nanos at) {
    while (step_ < steps_.size() && now_ < at) {
      Step& step = steps_[step_];
      const Nanos from = std::max(now_, step.begin), to = std::min(at, step.end);
      if (to > from) {
        const unsigned rank = highest();
        const StepCategory category = rank < kRanks ? kRanked[rank] : StepCategory::Other;
        step.parts[static_cast<unsigned>(category)] += static_cast<u64>(to - from);
        if (rank == kWaitsForInput) step.waited_for_batches_ns += static_cast<u64>(to - from);
      }
      if (at < step.end) break;
      ++step_;
    }
    now_ = std::max(now_, at);
  }
  void change(const Border& border) { active_[border.rank] += border.begins ? 1 : -1; }

 private:
  // kRanks: nothing is known.
  unsigned highest() const {
    unsigned rank = 0;
    while (rank < kRanks && active_[rank] <= 0) ++rank;
    return rank;
  }

  std::vector<Step>& steps_;
  std::size_t step_ = 0;
  Nanos now_ = std::numeric_limits<Nanos>::min();
  i64 active_[kRanks] = {};
};

struct DeviceTurn {
  Nanos first = 0, last = 0;  // begin of the first, end of the last operation; 0: none
};

// By step: what devices did of what was launched in it.
std::vector<DeviceTurn> device_turns(const ProcessTrace& process, const std::vector<Step>& steps) {
  std::vector<DeviceTurn> turns(steps.size());
  process.activities.spans.for_each([&](const ActivitySpan& span) {
    if (span.called == 0) return;
    const auto after = std::upper_bound(steps.begin(), steps.end(), span.called,
                                        [](Nanos time, const Step& step) { return time < step.begin; });
    if (after == steps.begin() || span.called >= std::prev(after)->end) return;
    DeviceTurn& turn = turns[static_cast<std::size_t>(after - steps.begin() - 1)];
    if (turn.last == 0 || span.begin < turn.first) turn.first = span.begin;
    turn.last = std::max(turn.last, span.end());
  });
  return turns;
}

// What takes longer than a launch or a copy ever does by itself: it waits for room in a queue, or for the device.
constexpr Nanos kWaits = 50'000;

// When a thread that launches waited for a device, or several did.
std::vector<LoopEvent> waits_of(const LoopLog& log) {
  std::vector<u32> launching;
  for (const LoopEvent& event : log.events) {
    if (event.kind() != LoopKind::Kernel && event.kind() != LoopKind::Graph) continue;
    if (std::find(launching.begin(), launching.end(), event.thread) == launching.end())
      launching.push_back(event.thread);
  }
  std::vector<LoopEvent> waits;
  for (const LoopEvent& event : log.events) {
    if (event.kind() == LoopKind::Mark) continue;
    if (event.kind() != LoopKind::Wait && event.end - event.begin < kWaits) continue;
    if (std::find(launching.begin(), launching.end(), event.thread) == launching.end()) continue;
    if (waits.empty() || event.begin >= waits.back().end)
      waits.push_back(event);
    else
      waits.back().end = std::max(waits.back().end, event.end);
  }
  return waits;
}

}  // namespace

void follow_device(const ProcessTrace& process, StepFacts& facts) {
  if (process.activities.width != 0 || process.activities.until != 0) return;  // not all is known
  const std::vector<DeviceTurn> turns = device_turns(process, facts.steps);
  std::size_t behind = 0;
  for (std::size_t i = 0; i < turns.size(); ++i)
    behind += turns[i].last > facts.steps[i].end + static_cast<Nanos>(facts.steps[i].length());
  if (behind * 2 <= turns.size()) return;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].last == 0) continue;
    Step step = facts.steps[i];
    const bool goes_on = i + 1 < turns.size() && step.end == facts.steps[i + 1].begin && turns[i + 1].last != 0;
    step.called_from = step.begin, step.called_to = step.end;
    step.begin = turns[i].first;
    step.end = goes_on ? turns[i + 1].first : turns[i].last;
    if (!steps.empty()) step.begin = std::max(step.begin, steps.back().end);
    if (step.end > step.begin) steps.push_back(step);
  }
  facts.steps = std::move(steps);
  facts.on_device = true;
  facts.evidence += "; by the device's times, the host is more than a step ahead";
}

void measure_host(const LoopLog& log, StepFacts& facts) {
  const std::vector<LoopEvent> waits = waits_of(log);  // none overlaps another
  auto wait = waits.begin();
  for (Step& step : facts.steps) {
    const bool behind = step.called_to != 0;
    const Nanos begin = behind ? step.called_from : step.begin, end = behind ? step.called_to : step.end;
    if (log.events_left_out && end > log.events.back().end) break;
    u64 waited = 0;
    for (; wait != waits.end() && wait->begin < end; ++wait) {
      const Nanos from = std::max(wait->begin, begin), to = std::min(wait->end, end);
      if (to > from) waited += static_cast<u64>(to - from);
      if (wait->end > end) break;  // goes on in the next one
    }
    step.host_busy_ns = std::max<u64>(1, static_cast<u64>(end - begin) - waited);
  }
}

void divide_steps(const ProcessTrace& process, StepFacts& facts) {
  if (facts.steps.empty()) return;
  if (!process.device.collected || process.activities.spans.empty()) {
    facts.not_divided = "needs device timing";
    return;
  }
  const std::vector<Border> borders = borders_of(process, Ranking(process));
  Sweep sweep(facts.steps);
  for (const Border& border : borders) {
    sweep.until(border.at);
    sweep.change(border);
  }
  sweep.until(facts.steps.back().end);
  std::size_t without = 0;
  for (Step& step : facts.steps) {
    step.divided = process.activities.covers(step.begin, step.end);
    if (!step.divided) step.parts = {}, step.waited_for_batches_ns = 0, ++without;
  }
  if (without)
    facts.not_divided =
        fmt::format("of {} of {} steps: too much happened to keep all of it", without, facts.steps.size());
}

}  // namespace gputrace
