// Phases: what a run did, one thing after the other.
#include "analysis/reports/section_report.h"
#include "analysis/steps/find_steps.h"

namespace gputrace {
namespace {

void fill_phases(const LoadedRun& run, Table& table) {
  for (const ProcessTrace& process : run.processes) {
    for (const PhaseSpan& phase : process.steps.phases) {
      table.rows.push_back({std::string(run_phase_name(phase.phase)), number(phase.begin),
                            number(phase.end - phase.begin), phase.evidence, static_cast<i64>(process.who.pid)});
    }
  }
  if (table.rows.empty()) table.notes.push_back("no phases: " + why_no_steps(run));
}

}  // namespace

extern constexpr SectionReport phases_report = {
    .section = "phases",
    .title = "Phases of the run, in order",
    .answers = "phase: begin, length, and by what it was told",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"phase", Unit::Text},
                {"begin_ns", Unit::Nanos},
                {"duration_ns", Unit::Nanos},
                {"evidence", Unit::Text, Hint::Prose},
                extra({"pid", Unit::Count, Hint::Detail})},
    .notes = {"phases of a process follow each other without a gap, from its first record to its last"},
    .fill = fill_phases,
    .of_all_devices = true,
};

}  // namespace gputrace
