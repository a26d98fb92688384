// Idle: the gaps between two operations of a device, longest first, each with its cause.
#include <algorithm>

#include "analysis/facts/kind_names.h"
#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

Value call_name(const ProcessTrace& process, u16 id) {
  if (id == 0) return {};
  for (const CallFacts& call : process.calls) {
    if (call.id == id) return call.name;
  }
  return {};
}

Parts parts_of(const IdleGap& gap) {
  Parts parts;
  for (unsigned i = 0; i < kIdleCauses; ++i) {
    if (gap.parts[i] > 0) parts.of.emplace_back(idle_cause_name(static_cast<IdleCause>(i)), gap.parts[i]);
  }
  std::stable_sort(parts.of.begin(), parts.of.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

// Where samples found the thread while it kept the device waiting, else where it called from.
Value site_of(const ProcessTrace& process, const IdleGap& gap, const FileNames& names, OriginSites& sites) {
  const SourceFrames& sampled = process.samples.frames;
  std::string site;
  if (gap.largest() == IdleCause::Host) site = site_name(sampled, own_frame(sampled, gap.sampled), names);
  if (site.empty()) site = sites.of(gap.origin);
  return text_or_null(site);
}

// From where the call before the host's longest pause in the gap was made.
Value line_before(const IdleGap& gap, OriginSites& sites) {
  if (gap.pause.length <= 0) return {};
  return text_or_null(sites.of(gap.pause.after));
}

// Of what the device did by itself no call is to blame.
bool of_the_device(IdleCause cause) { return cause == IdleCause::Unknown || cause == IdleCause::Dispatch; }

void fill_idle(const LoadedRun& run, Table& table) {
  const DeviceMap devices(run);
  const FileNames names(run);
  u64 gaps = 0, total = 0, kept = 0;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    OriginSites sites(process.lines, names);
    for (const DeviceTimes& times : process.device.devices) {
      gaps += times.gaps;
      total += times.idle_ns;
      for (const IdleGap& gap : times.longest) {
        kept += gap.length();
        table.rows.push_back({devices.number(p, times.device), gap.begin, number(gap.length()),
                              std::string(idle_cause_name(gap.largest())), parts_of(gap),
                              of_the_device(gap.largest()) ? Value() : call_name(process, gap.call),
                              site_of(process, gap, names, sites), static_cast<i64>(process.who.pid),
                              line_before(gap, sites)});
      }
    }
  }
  sort_table(table, "duration_ns");
  if (gaps > table.rows.size()) {
    table.notes.push_back(std::to_string(table.rows.size()) + " longest of " + std::to_string(gaps) +
                          " gaps: " + std::to_string(kept) + " of " + std::to_string(total) + " ns");
  }
}

}  // namespace

extern constexpr SectionReport idle_report = {
    .section = "idle",
    .title = "Idle gaps of the devices, longest first",
    .answers =
        "gaps of each device, longest first: begin, duration, its parts by cause and the largest of them, the call to "
        "blame",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Device},
    .columns = {{"device", Unit::None},
                {"begin_ns", Unit::Nanos},
                {"duration_ns", Unit::Nanos},
                {"cause", Unit::Text},
                {"parts", Unit::Nanos, Hint::Name},
                {"call", Unit::Text},
                {"site", Unit::Text},
                extra({"pid", Unit::None, Hint::Detail}),
                extra({"after_site", Unit::Text, Hint::Detail})},
    .notes =
        {"a gap: no kernel, copy or memset of this process ran on the device, between two that did; begin = "
         "CLOCK_MONOTONIC, in text from the first record on; cause = its largest part; parts = what it consists "
         "of, instant by "
         "instant; call = what took most of the largest part; site = the line that launched what ended it, or, "
         "where the host is the cause, the one at which most samples found that thread meanwhile; after_site = the "
         "line of the last call before the host's longest pause in the gap: what it did then lies behind it"},
    .fill = fill_idle,
};

}  // namespace gputrace
