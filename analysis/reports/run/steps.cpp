// Steps: when each began, how long it took, and where its time went.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr double kOutlier = 1.5;  // times the median
constexpr std::size_t kMostRows = 50'000;

// In the order of the columns: what most steps have first.
constexpr StepCategory kColumns[] = {StepCategory::Compute16,   StepCategory::Compute32,     StepCategory::ComputeOther,
                                     StepCategory::Input,       StepCategory::Launch,        StepCategory::Host,
                                     StepCategory::Output,      StepCategory::Other,         StepCategory::Collective,
                                     StepCategory::Compilation, StepCategory::DeviceToDevice};
static_assert(std::size(kColumns) == kStepCategories);

// What a step that took much longer than most spent more on than most.
Value cause_of(const Step& step, const StepStatistics& usual) {
  if (!step.counted || !step.divided || usual.divided < 4) return {};
  if (static_cast<double>(step.length()) < kOutlier * static_cast<double>(usual.median_ns)) return {};
  i64 most = 0;
  unsigned cause = 0;
  for (unsigned i = 0; i < kStepCategories; ++i) {
    const i64 more = static_cast<i64>(step.parts[i]) - static_cast<i64>(usual.mean_parts[i]);
    if (more > most) most = more, cause = i;
  }
  return fmt::format("{} +{}", step_category_name(static_cast<StepCategory>(cause)), human_nanos(most));
}

void add_rows(const ProcessTrace& process, Table& table) {
  const StepFacts& facts = process.steps;
  const StepStatistics usual = statistics_of(facts);
  u64 number_of = facts.first_number;
  for (const Step& step : facts.steps) {
    Row row{number(number_of++),   number(step.begin),
            number(step.length()), std::string(step_source_name(facts.source)),
            facts.confidence,      std::string(run_phase_name(step.phase))};
    for (const StepCategory category : kColumns)
      row.push_back(step.divided ? number(step.parts[static_cast<unsigned>(category)]) : Value());
    row.push_back(cause_of(step, usual));
    row.emplace_back(static_cast<i64>(process.who.pid));
    row.emplace_back(step.counted);
    table.rows.push_back(std::move(row));
    if (table.rows.size() == kMostRows) break;
  }
}

void add_notes(const LoadedRun& run, const ProcessTrace& process, Table& table) {
  const StepFacts& facts = process.steps;
  const StepStatistics usual = statistics_of(facts);
  const auto words = [](u64 length) { return human_nanos(static_cast<Nanos>(length)); };
  table.notes.push_back(
      fmt::format("process {}: {} (confidence {:.2f}); of the {} that count: mean {}, median {}, p99 {}",
                  process.who.pid, facts.evidence, facts.confidence, usual.counted, words(usual.mean_ns),
                  words(usual.median_ns), words(usual.p99_ns)));
  if (facts.not_divided.empty()) return;
  const std::string why =
      process.device.collected ? facts.not_divided : "needs device timing: " + why_no_device_times(run);
  table.notes.push_back(fmt::format("process {}: no parts: {}", process.who.pid, why));
}

void fill_steps(const LoadedRun& run, Table& table) {
  if (!main_steps(run)) {
    table.notes = {"no steps: " + why_no_steps(run)};
    return;
  }
  std::size_t steps = 0;
  for (const ProcessTrace& process : run.processes) {
    if (!process.steps.found()) continue;
    add_notes(run, process, table);
    steps += process.steps.steps.size();
    if (table.rows.size() < kMostRows) add_rows(process, table);
  }
  if (steps > table.rows.size()) table.total_rows = steps;
}

}  // namespace

extern constexpr SectionReport steps_report = {
    .section = "steps",
    .title = "Steps, in order",
    .answers = "step: begin, length, how it was found, phase, and where its time went",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"step", Unit::Count},
                {"begin_ns", Unit::Nanos, Hint::Detail},
                {"duration_ns", Unit::Nanos},
                {"source", Unit::Text, Hint::Detail},
                {"confidence", Unit::Ratio, Hint::Detail},
                {"phase", Unit::Text},
                {"compute_16_ns", Unit::Nanos},
                {"compute_32_ns", Unit::Nanos},
                {"compute_other_ns", Unit::Nanos},
                {"input_ns", Unit::Nanos},
                {"launch_ns", Unit::Nanos},
                {"host_ns", Unit::Nanos},
                {"output_ns", Unit::Nanos},
                {"other_ns", Unit::Nanos},
                {"collective_ns", Unit::Nanos},
                {"compilation_ns", Unit::Nanos},
                {"device_to_device_ns", Unit::Nanos},
                extra({"cause", Unit::Text}),
                extra({"pid", Unit::Count, Hint::Detail}),
                extra({"counted", Unit::Boolean, Hint::Detail})},
    .notes =
        {"the parts of a step sum to its length: at each instant counts what ranks highest of computing (16, 32 bit, "
         "other), copies to the host, copies on the device, waiting for the next batch (input), collectives, and then, "
         "while the device does nothing, launching, copies to the device (input), compiling, the host's own work",
         "cause = of a step 1.5 times as long as the median: what it spent more on than others",
         "counted = in mean, median and p99: not a first or compiling step, no evaluation, no checkpoint"},
    .fill = fill_steps,
    .of_all_devices = true,
};

}  // namespace gputrace
