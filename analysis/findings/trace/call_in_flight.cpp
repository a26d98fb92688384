// A process that ended inside a call.
#include <fmt/format.h>

#include <vector>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"
#include "analysis/run/runs.h"

namespace gputrace {
namespace {

// Its launcher ended it because another one of its run had failed: where it was then says little. `runs`: runs_of()
bool was_ended_for_another(std::size_t process, const LoadedRun& run, const std::vector<std::size_t>& runs) {
  if (!was_told_to_end(run.processes[process])) return false;
  for (std::size_t i = 0; i < run.processes.size(); ++i) {
    const ProcessIdentity& other = run.processes[i].who;
    if (runs[i] == runs[process] && other.failed && !was_told_to_end(run.processes[i]) &&
        other.end_realtime < run.processes[process].who.end_realtime)
      return true;
  }
  return false;
}

void find_call_in_flight(const LoadedRun& run, Findings& found) {
  const std::vector<std::size_t> runs = runs_of(run.processes);
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    if (process.in_flight.empty() || !process.who.ended) continue;
    const OpenCall* deepest = &process.in_flight.front();
    for (const OpenCall& open : process.in_flight) {
      if (open.tid == deepest->tid && open.depth > deepest->depth) deepest = &open;
    }
    const char* verb = process.who.died ? "died inside" : "ended while still inside";
    found.push_back({"call-in-flight",
                     process.who.died && !was_ended_for_another(p, run, runs) ? Severity::Problem : Severity::Hint,
                     "quality-notes",
                     fmt::format("{} {} {} (thread {})", name_of(process), verb, deepest->call, deepest->tid),
                     "",
                     {{"call", deepest->call},
                      {"tid", static_cast<i64>(deepest->tid)},
                      {"pid", static_cast<i64>(process.who.pid)},
                      {"open_calls", number(static_cast<u64>(process.in_flight.size()))}}});
  }
}

}  // namespace

extern constexpr FindingRule call_in_flight_rule = {
    .findings = {{"call-in-flight", "a process that ended inside a call"}},
    .needs = {},
    .find = find_call_in_flight,
};

}  // namespace gputrace
