// NVTX ranges: how often and how long, and what of a device they account for.
#include <map>

#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

void fill_nvtx(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("device times are not known: " + why_no_device_times(run));
  std::map<std::pair<std::string, std::string>, NvtxRangeTotals> sums;
  u64 unended = 0, names_of_others = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const NvtxRangeTotals& range : process.nvtx) {
      NvtxRangeTotals& sum = sums[{range.range, range.domain}];
      sum.count += range.count;
      sum.total_ns += range.total_ns;
      sum.device_ns += range.device_ns;
      sum.kernels += range.kernels;
      sum.pushed = sum.pushed || range.pushed;
      unended += range.unended;
      names_of_others += range.range == kOtherRanges;
    }
  }
  for (const auto& [key, range] : sums) {
    const bool known = timed && range.pushed;
    table.rows.push_back({text_or_null(key.first), text_or_null(key.second), number(range.count),
                          number(range.total_ns), mean(range.total_ns, range.count),
                          known ? number(range.device_ns) : Value(), known ? number(range.kernels) : Value()});
  }
  sort_table(table, "total_ns");
  if (unended)
    table.notes.push_back(std::to_string(unended) + (unended == 1 ? " range" : " ranges") +
                          " did not both begin and end in the trace: not in count and times, their kernels are");
  if (names_of_others) table.notes.push_back("ranges of more than 65,536 names: the later ones are one row");
}

}  // namespace

extern constexpr SectionReport nvtx_report = {
    .section = "nvtx",
    .title = "NVTX ranges, by their time on the host",
    .answers = "by range: count, time on the host, time on a device, kernels",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Ranges},
    .columns = {{"range", Unit::Text, Hint::Name},
                {"domain", Unit::Text},
                {"count", Unit::Count},
                {"total_ns", Unit::Nanos},
                {"mean_ns", Unit::Nanos},
                {"device_total_ns", Unit::Nanos},
                {"kernels", Unit::Count}},
    .notes =
        {"device total = from the begin of the first to the end of the last operation that its thread launched in a "
         "range, summed over ranges; kernels = executions among them, ranges within included; ranges begun with "
         "start and ended with end have none, any thread may be in them"},
    .fill = fill_nvtx,
    .of_all_devices = true,
};

}  // namespace gputrace
