// Conservation, thread by thread: seen = stored + dropped.
#include "analysis/run/quality.h"
#include "analysis/reports/list.h"

namespace gputrace {

Table quality_report(const LoadedTrace& trace) {
  Table table;
  table.section = "quality";
  table.title = "Records: seen = stored + dropped";
  table.columns = {{"pid", Unit::None},
                   {"tid", Unit::None},
                   {"thread", Unit::Text},
                   {"seen", Unit::Count},
                   {"stored", Unit::Count},
                   {"dropped", Unit::Count},
                   {"reason", Unit::Text, Hint::Prose},
                   {"exact", Unit::Boolean},
                   {"slot", Unit::None, Hint::Detail},
                   {"incarnation", Unit::None, Hint::Detail}};
  table.notes = {
      "exact: no = the last counters are missing (sidecar killed, file cut): seen is what is known for certain"};
  for (const ProcessTrace& process : trace.processes) {
    for (const ThreadFacts& thread : process.threads) {
      u64 dropped = 0;
      for (const u64 count : thread.dropped) dropped += count;
      table.rows.push_back({static_cast<i64>(process.who.pid),
                            thread.process_wide ? Value() : Value(static_cast<i64>(thread.tid)),
                            thread.process_wide   ? Value("(threads without a slot)")
                            : thread.name.empty() ? Value()
                                                  : Value(thread.name),
                            number(thread.seen), number(thread.stored), number(dropped),
                            dropped ? Value(drop_reasons(thread.dropped)) : Value(), thread.exact,
                            thread.process_wide ? Value() : number(static_cast<u64>(thread.slot)),
                            thread.process_wide ? Value() : number(static_cast<u64>(thread.incarnation))});
    }
  }
  return table;
}

}  // namespace gputrace
