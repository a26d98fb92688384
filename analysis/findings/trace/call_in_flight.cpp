// A process that ended inside a call.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

void find_call_in_flight(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    if (process.in_flight.empty() || !process.who.ended) continue;
    const OpenCall* deepest = &process.in_flight.front();
    for (const OpenCall& open : process.in_flight) {
      if (open.tid == deepest->tid && open.depth > deepest->depth) deepest = &open;
    }
    const char* verb = process.who.died ? "died inside" : "ended while still inside";
    found.push_back({"call-in-flight",
                     process.who.died ? Severity::Problem : Severity::Hint,
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
