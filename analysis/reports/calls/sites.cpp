// Where in the program's source CUDA is called from, and what that costs.
#include "analysis/run/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

void fill_sites(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("device and gpu idle are not known: " + why_no_device_times(run));
  for (const SiteSum& sum : sites_of(run)) {
    const bool known = !sum.site.empty();
    table.rows.push_back({known ? sum.site : std::string("(no Python frame on the calling thread)"),
                          known ? Value(std::string("Python")) : Value(), number(sum.totals.calls),
                          number(sum.totals.launches), timed ? number(sum.times.device_ns) : Value(),
                          timed ? number(sum.times.idle_ns) : Value(), number(sum.totals.wait_ns),
                          number(sum.totals.copy_bytes), number(sum.totals.allocated_bytes)});
  }
  sort_table(table, "calls");
  if (timed) sort_table(table, "device_total_ns");
  table.sort = timed ? "device_total_ns" : "calls";
}

}  // namespace

extern constexpr SectionReport sites_report = {
    .section = "sites",
    .title = "Source lines, by the device time of what they launched",
    .answers = "by source line: calls, launches, device time, idle time before its operations, waits, bytes",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Lines},
    .columns = {{"site", Unit::Text, Hint::Name},
                {"language", Unit::Text},
                {"calls", Unit::Count},
                {"launches", Unit::Count},
                {"device_total_ns", Unit::Nanos},
                {"idle_ns", Unit::Nanos},
                {"wait_ns", Unit::Nanos},
                {"copy_bytes", Unit::Bytes},
                {"allocated_bytes", Unit::Bytes}},
    .notes =
        {"a line is the innermost one of the stack that lies in no installed package and not in the standard library",
         "calls = driver calls that launch, copy, set, wait, allocate or free; device = time of their operations on "
         "the device; idle = time that the device did nothing before an operation of that line began, but for what the "
         "program did between two calls: that goes to the lines at which samples found it"},
    .fill = fill_sites,
    .of_all_devices = true,
};

}  // namespace gputrace
