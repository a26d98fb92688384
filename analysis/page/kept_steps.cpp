#include "analysis/page/kept_steps.h"

#include <bit>

#include "analysis/page/index_bytes.h"
#include "analysis/page/packed.h"

namespace gputrace {
namespace {

void add(PackedColumn& out, const Step& step) {
  for (const Nanos time : {step.begin, step.end, step.called_from, step.called_to}) out.add_signed(time);
  out.add(static_cast<u64>(step.phase));
  out.add(step.counted);
  out.add(step.divided);
  for (const u64 part : step.parts) out.add(part);
  out.add(step.waited_for_batches_ns);
  out.add(step.host_busy_ns);
}

void add(PackedColumn& out, const StepFacts& facts) {
  out.add(static_cast<u64>(facts.source));
  out.add(std::bit_cast<u64>(facts.confidence));
  for (const std::string* text : {&facts.evidence, &facts.why_none, &facts.not_divided, &facts.loader})
    out.add_text(*text);
  out.add(facts.on_device);
  out.add(facts.loader_sampled);
  for (const u64 value : {facts.batches, facts.batch_ns, facts.first_number}) out.add(value);
  out.add(facts.steps.size());
  for (const Step& step : facts.steps) add(out, step);
  out.add(facts.phases.size());
  for (const PhaseSpan& phase : facts.phases) {
    out.add(static_cast<u64>(phase.phase));
    out.add_signed(phase.begin);
    out.add_signed(phase.end);
    out.add_text(phase.evidence);
  }
}

// Reads one after the other; good() says at last whether all of it may be used.
class StepReader {
 public:
  explicit StepReader(const std::string& bytes) : in_(bytes) {}

  RunSteps run() {
    RunSteps run;
    run.why_none = in_.text();
    const bool has_origin = in_.number() != 0;
    const Nanos origin = in_.number_signed();
    if (has_origin) run.origin = origin;
    good_ = good_ && is_time(origin, origin);
    run.processes.resize(in_.count(13));
    for (RunSteps::Process& process : run.processes) {
      process.file = in_.text();
      read(process.steps);
    }
    return run;
  }
  bool good() const { return good_ && in_.good() && in_.at_end(); }

 private:
  // Of `count` values.
  template <typename Value>
  Value value_below(u64 count) {
    const u64 number = in_.number();
    good_ = good_ && number < count;
    return static_cast<Value>(number < count ? number : 0);
  }

  void read(Step& step) {
    for (Nanos* time : {&step.begin, &step.end, &step.called_from, &step.called_to}) *time = in_.number_signed();
    good_ = good_ && is_time(step.begin, step.end) && is_time(step.called_from, step.called_to);
    step.phase = value_below<RunPhase>(kRunPhases);
    step.counted = in_.number() != 0;
    step.divided = in_.number() != 0;
    for (u64& part : step.parts) part = in_.number();
    step.waited_for_batches_ns = in_.number();
    step.host_busy_ns = in_.number();
  }

  void read(StepFacts& facts) {
    facts.source = value_below<StepSource>(static_cast<u64>(StepSource::Inferred) + 1);
    facts.confidence = std::bit_cast<double>(in_.number());
    for (std::string* text : {&facts.evidence, &facts.why_none, &facts.not_divided, &facts.loader}) *text = in_.text();
    facts.on_device = in_.number() != 0;
    facts.loader_sampled = in_.number() != 0;
    for (u64* value : {&facts.batches, &facts.batch_ns, &facts.first_number}) *value = in_.number();
    facts.steps.resize(in_.count(9 + kStepCategories));
    for (Step& step : facts.steps) read(step);
    facts.phases.resize(in_.count(4));
    for (PhaseSpan& phase : facts.phases) {
      phase.phase = value_below<RunPhase>(kRunPhases);
      phase.begin = in_.number_signed();
      phase.end = in_.number_signed();
      phase.evidence = in_.text();
      good_ = good_ && is_time(phase.begin, phase.end);
    }
  }

  ColumnReader in_;
  bool good_ = true;
};

}  // namespace

std::string packed_steps(const RunSteps& steps) {
  PackedColumn out;
  out.add_text(steps.why_none);
  out.add(steps.origin.has_value());
  out.add_signed(steps.origin.value_or(0));
  out.add(steps.processes.size());
  for (const RunSteps::Process& process : steps.processes) {
    out.add_text(process.file);
    add(out, process.steps);
  }
  return std::string(out.bytes());
}

std::optional<RunSteps> steps_in(const std::string& bytes) {
  StepReader reader(bytes);
  RunSteps steps = reader.run();
  if (!reader.good()) return {};
  return steps;
}

}  // namespace gputrace
