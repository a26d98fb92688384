// Where in the program's source CUDA is called from, and what that costs.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// What the lines between two calls rest on.
void add_sampling_note(const LoadedRun& run, Table& table) {
  SampleFacts all;
  Nanos length = 0;
  for (const ProcessTrace& process : run.processes) {
    const SampleFacts& samples = process.samples;
    if (!samples.collected) continue;
    length += std::max(process.end, samples.newest) - process.begin;
    all.taken += samples.taken, all.of_workers += samples.of_workers, all.of_others += samples.of_others,
        all.left_out += samples.left_out;
    all.outer_part += samples.outer_part, all.torn += samples.torn, all.cpu_ns += samples.cpu_ns;
  }
  if (all.taken + all.of_workers + all.of_others == 0) return;
  std::string text = fmt::format(
      "lines between two calls: {} looks at the calling threads, {} at workers forked from them, {} at other threads "
      "while none of those ran; in all of the run {} "
      "told the outer frames alone and {} nothing, since these changed meanwhile; they took {:.1f} % of a core",
      human_count(all.taken), human_count(all.of_workers), human_count(all.of_others), human_count(all.outer_part),
      human_count(all.torn), length > 0 ? 100 * static_cast<double>(all.cpu_ns) / static_cast<double>(length) : 0);
  if (all.left_out) text += fmt::format("; {} more were left out", human_count(all.left_out));
  table.notes.push_back(text);
}

// Native frames whose function nobody can tell.
void add_native_note(const LoadedRun& run, Table& table) {
  u64 all = 0, unnamed = 0;
  for (const ProcessTrace& process : run.processes) {
    all += process.lines.native.size();
    unnamed += process.lines.unnamed;
  }
  if (unnamed == 0) return;
  table.notes.push_back(
      fmt::format("{} of {} native frames have no function: their object is not here, is another file now, has no "
                  "symbols, or there are "
                  "too many to look at",
                  human_count(unnamed), human_count(all)));
}

void fill_sites(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (!timed) table.notes.push_back("device and gpu idle are not known: " + why_no_device_times(run));
  for (SiteSum& sum : sites_of(run)) {
    const bool known = !sum.site.empty();
    table.rows.push_back({known ? std::move(sum.site) : std::string("(no line known of the calling thread)"),
                          known ? Value(std::string(sum.native ? "native" : "Python")) : Value(),
                          number(sum.totals.calls), number(sum.totals.launches),
                          timed ? number(sum.times.device_ns) : Value(), timed ? number(sum.times.idle_ns) : Value(),
                          number(sum.totals.wait_ns), number(sum.totals.copy_bytes), number(sum.totals.allocated_bytes),
                          replays_graphs(run) ? number(sum.replayed_kernels) : Value(),
                          text_or_null(std::move(sum.within))});
  }
  add_sampling_note(run, table);
  add_native_note(run, table);
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
    .columns = {{"site", Unit::Text, Hint::Site},
                {"language", Unit::Text},
                {"calls", Unit::Count},
                {"launches", Unit::Count},
                {"device_total_ns", Unit::Nanos},
                {"idle_ns", Unit::Nanos},
                {"wait_ns", Unit::Nanos},
                {"copy_bytes", Unit::Bytes},
                {"allocated_bytes", Unit::Bytes},
                extra({"replayed_kernels", Unit::Count}),
                extra({"within", Unit::Text})},
    .notes =
        {"a line is the innermost one of the stack that lies in no installed package and not in the standard library, "
         "else (an installed command, a process that a package made) the innermost of a package that is no framework; "
         "of native frames (GPUTRACE_COLLECT=+stacks) the innermost one outside of the system's and CUDA's libraries",
         "calls = driver calls that launch, copy, set, wait, allocate or free; device = time of their operations on "
         "the device; idle = time that the device did nothing before an operation of that line began, but for what the "
         "program did between two calls: that goes to the lines at which samples found it",
         "replayed_kernels = kernels that replays of CUDA graphs ran and that this line captured (nodes x replays)",
         "within = the innermost function of an installed package, but for frameworks, that holds at least half of the "
         "device and idle time of what the line called",
         "the time of a replay is that of the lines that captured it with GPUTRACE_GRAPHS=node, else it is known as a "
         "whole and is the launching line's"},
    .fill = fill_sites,
    .of_all_devices = true,
};

}  // namespace gputrace
