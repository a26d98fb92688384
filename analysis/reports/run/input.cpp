// Input: what the loop waits for before each step, by the stages of TensorFlow's input-pipeline analyzer as far as they are known.
#include "analysis/reports/section_report.h"
#include "analysis/run/host_use.h"
#include "analysis/run/input_wait.h"
#include "analysis/run/needs.h"
#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr const char* kNotTold = "not collected: what prepares batches makes no CUDA call";
constexpr const char* kNotRead = "not collected: file calls (GPUTRACE_COLLECT=+io tells)";

// Time in calls that read data, in the traced processes or in those forked from them.
u64 reading(const LoadedRun& run, bool in_workers) {
  u64 sum = 0;
  for (const ProcessTrace& process : run.processes) {
    const SampleFacts& samples = process.samples;
    for (const FileUses& uses : samples.files) {
      if (reads(uses.call) && (uses.process != 0) == in_workers && is_data(samples.paths[uses.path]))
        sum += uses.total_ns;
    }
  }
  return sum;
}

// Host time in copies to the device.
u64 copies_to_device(const LoadedRun& run) {
  u64 sum = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) {
      if (group.kind == TransferKind::HtoD) sum += group.call_ns;
    }
  }
  return sum;
}

void fill_input(const LoadedRun& run, Table& table) {
  const ProcessTrace* const process = main_steps(run);
  u64 batches = 0, waited = 0;
  std::string sampled;
  for (const ProcessTrace& each : run.processes) {
    batches += each.steps.batches, waited += each.steps.batch_ns;
    if (each.steps.loader_sampled) sampled = each.steps.loader;
  }
  const u64 enqueued = copies_to_device(run), all = enqueued + waited;
  const auto share = [all](u64 part) {
    return all ? Value(static_cast<double>(part) / static_cast<double>(all)) : Value();
  };
  const bool files_are_known = !why_not_met({Need::Files}, run);
  const auto add_reading = [&](const char* stage, bool in_workers, const char* note) {
    table.rows.push_back({std::string(stage),
                          files_are_known ? number(reading(run, in_workers)) : Value(),
                          {},
                          std::string(files_are_known ? note : kNotRead)});
  };
  add_reading("read_on_demand", false,
              "in calls of the traced processes that open and read files (but .py, .pyc, .so), whole run; where the "
              "loop reads by itself: "
              "part of other");
  add_reading("read_ahead", true, "the same in processes forked from them, beside the loop");
  table.rows.push_back({std::string("preprocess"), {}, {}, std::string(kNotTold)});
  table.rows.push_back({std::string("enqueue"), number(enqueued), share(enqueued),
                        std::string("host time in calls that copy to the device, whole run")});
  if (batches) {
    table.rows.push_back(
        {std::string("other"), number(waited), share(waited),
         sampled.empty()
             ? std::to_string(batches) + " requests for a batch in steps that count: reading and preparing in "
                                         "the program's own thread, or waiting for workers"
             : std::to_string(batches) + " pauses in steps that count, in which looks found it to ask " + sampled +
                   " for a batch, and others between the same calls"});
  } else if (!sampled.empty()) {
    table.rows.push_back({std::string("other"), number(waited), share(waited),
                          "another thread asks " + sampled + " ahead, and no looks found the loop waiting for that"});
  } else {
    table.rows.push_back({std::string("other"), {}, {}, std::string("no framework told of a loader in the loop")});
  }
  if (!process) return table.notes.push_back("no verdict: needs steps: " + why_no_steps(run));
  const auto wait = input_wait_of(process->steps);
  if (!wait) return table.notes.push_back("no verdict: needs device timing");
  table.notes.push_back(
      "process " + std::to_string(process->who.pid) + " is " + input_words(process->steps, wait->share()) + ": " +
      human_nanos(static_cast<Nanos>(wait->input_ns / wait->steps)) + " of a mean step of " +
      human_nanos(static_cast<Nanos>(wait->steps_ns / wait->steps)) + " (moderately from 5 %, highly from 20 %)");
}

}  // namespace

extern constexpr SectionReport input_report = {
    .section = "input",
    .title = "Input, by stage",
    .answers = "stage of input: host time, as far as it is known",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {{"stage", Unit::Text},
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                extra({"note", Unit::Text, Hint::Prose})},
    .notes = {"share = of the stages that are known"},
    .fill = fill_input,
    .of_all_devices = true,
};

}  // namespace gputrace
