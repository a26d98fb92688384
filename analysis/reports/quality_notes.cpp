// What every reader of the numbers must know: damage, calls that never returned, options that were not understood,
// notes of the collection.
#include <cstdio>

#include "analysis/quality.h"
#include "analysis/reports/list.h"

namespace gputrace {

Table quality_notes_report(const LoadedTrace& trace) {
  Table table;
  table.section = "quality-notes";
  table.title = "About the data";
  table.columns = {{"what", Unit::Text}, {"text", Unit::Text, Hint::Name}, {"pid", Unit::None, Hint::Detail}};
  for (const std::string& unread : trace.unread) table.rows.push_back({"file", "not read: " + unread, {}});
  for (const ProcessTrace& process : trace.processes) {
    const Value pid = static_cast<i64>(process.who.pid);
    const std::string name = trace.processes.size() > 1 ? name_of(process) + ": " : "";
    const auto note = [&](const char* what, const std::string& text) {
      table.rows.push_back({std::string(what), name + text, pid});
    };
    for (const std::string& damage : process.damage) note("damage", damage);
    for (const OpenCall& open : process.in_flight) {
      char argument[32];
      std::snprintf(argument, sizeof argument, "0x%llx", static_cast<unsigned long long>(open.argument));
      const char* verb = process.who.died ? "died inside " : "had not returned from ";
      note("in-flight", verb + open.call + " (thread " + std::to_string(open.tid) + ", argument " + argument +
                            (open.depth ? ", nested in another call" : "") + ")");
    }
    if (!process.who.ended)
      note("end", "the trace has no end: the process still runs, or its sidecar was killed, or the file was cut");
    if (!process.counters_exact)
      note("counters", "the last counters are missing; dropped records are not known after them");
    if (process.unknown_records) {
      note("records", std::to_string(process.unknown_records) +
                          " records are of types that this version does not know (newer writer); they were skipped");
    }
    for (const std::string& warning : process.warnings) note("option", warning);
    for (const std::string& text : process.notes) note("note", text);
  }
  return table;
}

}  // namespace gputrace
