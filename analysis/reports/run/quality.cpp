// Conservation, thread by thread: seen = stored + dropped.
#include "analysis/run/quality.h"
#include "analysis/reports/section_report.h"

namespace gputrace {
namespace {

void fill_quality(const LoadedRun& run, Table& table) {
  for (const ProcessTrace& process : run.processes) {
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
}

}  // namespace

extern constexpr SectionReport quality_report = {
    .section = "quality",
    .title = "Records: seen = stored + dropped",
    .answers = "thread: seen, stored, dropped by reason",
    .shown = Shown::OnDemand,
    .needs = {},
    .columns = {{"pid", Unit::None},
                {"tid", Unit::None},
                extra({"thread", Unit::Text}),
                {"seen", Unit::Count},
                {"stored", Unit::Count},
                {"dropped", Unit::Count},
                {"reason", Unit::Text, Hint::Prose},
                extra({"exact", Unit::Boolean}),
                extra({"slot", Unit::None, Hint::Detail}),
                extra({"incarnation", Unit::None, Hint::Detail})},
    .notes =
        {"exact: no = the last counters are missing (sidecar killed, file cut): seen is what is known for certain"},
    .fill = fill_quality,
    .of_all_devices = true,
};

}  // namespace gputrace
