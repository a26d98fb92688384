#include "analysis/steps/step_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernels/tensor_cores.h"

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

std::vector<Border> borders_of(const ProcessTrace& process, const Ranking& ranking) {
  std::vector<Border> borders;
  borders.reserve(process.activities.spans.size() * 2);
  const auto add = [&](Nanos begin, Nanos end, Rank rank) {
    borders.push_back({begin, rank, true});
    borders.push_back({end, rank, false});
  };
  for (const ActivitySpan& span : process.activities.spans) add(span.begin, span.end(), ranking.of(span));
  for (const LoopEvent& event : process.loop.events) {
    if (event.symbol == loop_symbol(LoopMark::NextBatch)) add(event.begin, event.end, kWaitsForInput);
  }
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
      if (to > from) step.parts[static_cast<unsigned>(category())] += static_cast<u64>(to - from);
      if (at < step.end) break;
      ++step_;
    }
    now_ = std::max(now_, at);
  }
  void change(const Border& border) { active_[border.rank] += border.begins ? 1 : -1; }

 private:
  StepCategory category() const {
    for (unsigned rank = 0; rank < kRanks; ++rank) {
      if (active_[rank] > 0) return kRanked[rank];
    }
    return StepCategory::Other;
  }

  std::vector<Step>& steps_;
  std::size_t step_ = 0;
  Nanos now_ = std::numeric_limits<Nanos>::min();
  i64 active_[kRanks] = {};
};

}  // namespace

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
    if (!step.divided) step.parts = {}, ++without;
  }
  if (without)
    facts.not_divided =
        fmt::format("of {} of {} steps: too much happened to keep all of it", without, facts.steps.size());
}

}  // namespace gputrace
