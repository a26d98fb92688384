// A process that ended inside a call.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

// Its launcher ended it because another one had failed: where it was then says little.
bool was_ended_for_another(const ProcessTrace& process, const LoadedRun& run) {
  return was_told_to_end(process) &&
         std::any_of(run.processes.begin(), run.processes.end(), [&](const ProcessTrace& other) {
           return other.who.failed && !was_told_to_end(other) && other.who.end_realtime < process.who.end_realtime;
         });
}

void find_call_in_flight(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    if (process.in_flight.empty() || !process.who.ended) continue;
    const OpenCall* deepest = &process.in_flight.front();
    for (const OpenCall& open : process.in_flight) {
      if (open.tid == deepest->tid && open.depth > deepest->depth) deepest = &open;
    }
    const char* verb = process.who.died ? "died inside" : "ended while still inside";
    found.push_back({"call-in-flight",
                     process.who.died && !was_ended_for_another(process, run) ? Severity::Problem : Severity::Hint,
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
