// Input operations: the functions that make the program's batches, by what samples found, in the columns of TensorFlow's
// input-pipeline analyzer.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/reports/section_report.h"
#include "analysis/run/input_ops.h"

namespace gputrace {
namespace {

void fill_input_ops(const LoadedRun& run, Table& table) {
  const InputOps found = input_ops_of(run);
  const double all = static_cast<double>(std::max<u64>(found.all_ns, 1));
  for (const InputOp& op : found.ops) {
    const double share = static_cast<double>(op.self_ns) / all;
    table.rows.push_back({op.op,
                          {},
                          number(op.total_ns),
                          number(op.self_ns),
                          share,
                          {},
                          op.bytes ? number(*op.bytes) : Value(),
                          std::string(op.ahead ? "worker" : "loop"),
                          number(op.samples)});
  }
  sort_table(table, "total_ns");
  bool collected = false;
  for (const ProcessTrace& process : run.processes) collected = collected || process.samples.collected;
  if (!collected)
    table.notes.push_back("no rows: nobody looked at the program between its calls (not_collected says why)");
  else if (found.samples == 0 && found.waiting != 0)
    table.notes.push_back(fmt::format(
        "no rows: {} samples found workers that waited to be asked for a batch, and none a loader of torch.utils.data "
        "at work",
        found.waiting));
  else if (found.samples == 0)
    table.notes.push_back(
        "no rows: no sample found a loader at work (of torch.utils.data, or another that is known by its functions); "
        "other ones are not told apart from the "
        "rest of the program");
  else
    table.notes.push_back(std::to_string(found.samples) + " samples of loaders at work; " +
                          std::to_string(found.waiting) +
                          " of workers that waited to be asked for a batch are left out");
}

}  // namespace

extern constexpr SectionReport input_ops_report = {
    .section = "input-ops",
    .title = "What makes the input, by total time",
    .answers =
        "function that makes batches, in the loop or in a worker: its time, with and without what it called, from "
        "samples",
    .shown = Shown::OnDemand,
    .needs = {Need::Lines},
    .columns = {{"op", Unit::Text, Hint::Name},
                {"count", Unit::Count, Hint::Detail},
                {"total_ns", Unit::Nanos},
                {"self_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"category", Unit::Text, Hint::Detail},
                {"bytes", Unit::Bytes, Hint::Detail},
                extra({"where", Unit::Text}),
                extra({"samples", Unit::Count})},
    .notes = {"total = samples that found the function, each as long as the time since the look before; self = those "
              "that found it "
              "innermost; share = self, of all; over all workers; where = loop: in the thread that trains, which waits "
              "for it; worker: "
              "in a process or another thread beside it",
              "count = null: samples see no calls; category = null: samples do not tell reading from preparing; bytes "
              "= that it and what it called read from files of data, in calls of 8 KiB or 20 us and more; null: file "
              "calls were not "
              "collected (GPUTRACE_COLLECT=+io), or a worker's, whose calls are told by file alone (io)"},
    .fill = fill_input_ops,
    .of_all_devices = true,
};

}  // namespace gputrace
