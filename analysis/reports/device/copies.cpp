// Copies and memsets: by kind, device, memory of the host side, and whether the call takes a stream.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "analysis/facts/kind_names.h"
#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

Value kind_name(TransferKind kind) {
  switch (kind) {
    case TransferKind::HtoD:
      return "HtoD";
    case TransferKind::DtoH:
      return "DtoH";
    case TransferKind::DtoD:
      return "DtoD";
    case TransferKind::PtoP:
      return "PtoP";
    case TransferKind::HtoH:
      return "HtoH";
    case TransferKind::Memset:
      return "memset";
    case TransferKind::Unknown:
      return {};
  }
  return {};
}

Value bandwidth(u64 bytes, u64 nanos) {
  if (nanos == 0) return {};
  return rounded(static_cast<double>(bytes) * 1e9 / static_cast<double>(nanos));
}

void add_time_notes(const LoadedRun& run, Table& table) {
  if (!device_collected(run)) {
    table.notes.push_back("total time and bandwidth on the device need device timing: " + why_no_device_times(run));
    return;
  }
  u64 made = 0, timed = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) made += group.executions(), timed += group.device_count;
  }
  if (timed < made)
    table.notes.push_back(
        "the device reported " + std::to_string(timed) + " of " + std::to_string(made) +
        " copies and memsets (column timed): total and bandwidth are over those, count and bytes over "
        "all (those in replays of graphs that are seen as a whole have no times of their own: "
        "GPUTRACE_GRAPHS=node)");
  const DeviceTotals totals = device_totals(run);
  table.notes.push_back(
      "total = time on the device, summed; bandwidth = bytes / that time, of the copies that the device reported");
  if (const auto hidden = ratio(totals.copy_ns - totals.exposed_copy_ns, totals.copy_ns)) {
    char text[128];
    std::snprintf(text, sizeof text, "%.1f %% of the time in which a copy or memset ran, a kernel ran too",
                  *hidden * 100);
    table.notes.emplace_back(text);
  }
}

void add_parts_note(const LoadedRun& run, Table& table) {
  u64 parts = 0;
  for (const ProcessTrace& process : run.processes) {
    for (const CopyGroup& group : process.copies) parts += group.parts;
  }
  if (parts == 0) return;
  table.notes.push_back("a cudaMemset3D is counted once; the device ran " + std::to_string(parts) +
                        (parts == 1 ? " memset" : " memsets") + " more for those here, which bytes and times hold");
}

void fill_copies(const LoadedRun& run, Table& table) {
  struct CopyRow {
    Value device;
    u64 count = 0, bytes = 0, call_ns = 0, in_graphs = 0;
    u64 device_count = 0, device_bytes = 0, device_ns = 0;
    NamedAmounts sites;
  };
  const DeviceMap devices(run);
  const FileNames files(run);
  std::map<std::tuple<TransferKind, i64, HostMemory, bool>, CopyRow> rows;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    for (const CopyGroup& group : run.processes[p].copies) {
      const Value device = devices.number(p, group.device);
      CopyRow& row = rows[{group.kind, is_null(device) ? -1 : std::get<i64>(device), group.memory, group.asynchronous}];
      row.device = device;
      row.count += group.executions();
      row.bytes += group.executed_bytes();
      row.call_ns += group.call_ns;
      row.in_graphs += group.in_graphs;
      row.device_count += group.device_count;
      row.device_bytes += group.device_bytes;
      row.device_ns += group.device_ns;
      add_sites(run.processes[p], group.bytes_by_origin, files, row.sites);
    }
  }
  add_time_notes(run, table);
  add_parts_note(run, table);
  for (const auto& [key, row] : rows) {
    const std::string memory = host_memory_name(std::get<2>(key));
    table.rows.push_back({kind_name(std::get<0>(key)), row.device, text_or_null(memory), std::get<3>(key),
                          number(row.count), number(row.bytes), number(row.device_count),
                          row.device_count ? number(row.device_ns) : Value(),
                          bandwidth(row.device_bytes, row.device_ns), number(row.call_ns), number(row.in_graphs),
                          text_or_null(row.sites.most())});
  }
  sort_table(table, "bytes");
}

}  // namespace

extern constexpr SectionReport copies_report = {
    .section = "copies",
    .title = "Copies and memsets by bytes",
    .answers = "kind, memory of the host side, sync or async: count, bytes, time on the device, bandwidth",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"kind", Unit::Text},
                {"device", Unit::None},
                {"memory", Unit::Text},
                {"async", Unit::Boolean},
                {"count", Unit::Count},
                {"bytes", Unit::Bytes},
                extra({"timed", Unit::Count}),
                {"total_ns", Unit::Nanos},
                {"bandwidth", Unit::BytesPerSecond},
                extra({"api_total_ns", Unit::Nanos}),
                extra({"in_graphs", Unit::Count, Hint::Detail}),
                {"site", Unit::Text}},
    .notes = {"memory = of the host side; async = the call takes a stream; api_total = host time in the calls; site = "
              "the line that copied most bytes so"},
    .fill = fill_copies,
};

}  // namespace gputrace
