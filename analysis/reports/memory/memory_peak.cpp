// What was allocated when a device held most.
#include <map>
#include <tuple>

#include "analysis/facts/kind_names.h"
#include "analysis/lines/sites.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_memory.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

struct PeakSums {
  u64 bytes = 0, count = 0;
};

void say_that_several_share(Table& table) {
  table.notes.push_back(
      "several processes shared a device: its rows add up the processes' own peaks, not all at one time");
}

// By kind, site and operation.
using TensorRows = std::map<std::tuple<std::string, std::string, std::string>, PeakSums>;

void add_tensors(const ProcessTrace& process, const FrameworkMemory& memory, const FileNames& names, TensorRows& rows) {
  for (const TensorPart& part : memory.at_peak) {
    PeakSums& sums =
        rows[{kTensorKinds[static_cast<std::size_t>(part.kind)], site_of_origin(process.lines, part.origin, names),
              allocation_of_origin(process.lines, part.origin)}];
    sums.bytes += part.bytes;
    sums.count += part.count;
  }
  // The rest of what the process had of the device at that instant: the rows add up to it.
  rows[{"reserved, unused", "", ""}].bytes += memory.peak_reserved_bytes - memory.peak_bytes;
  if (memory.driver_bytes_at_peak > memory.peak_reserved_bytes)
    rows[{"outside of PyTorch", "", ""}].bytes += memory.driver_bytes_at_peak - memory.peak_reserved_bytes;
}

// False: no framework told what it does with the memory of this device.
bool fill_by_tensor(const LoadedRun& run, const DeviceMap& devices, const Value& device, Table& table) {
  const FileNames names(run);
  TensorRows rows;
  Nanos peak_at = 0;
  u64 highest = 0;
  std::size_t processes = 0;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    for (const FrameworkMemory& memory : run.processes[p].tensors) {
      if (memory.peak_bytes == 0 || devices.number(p, memory.device) != device) continue;
      add_tensors(run.processes[p], memory, names, rows);
      if (memory.peak_bytes > highest) highest = memory.peak_bytes, peak_at = memory.peak_at;
      ++processes;
    }
  }
  if (processes > 1) say_that_several_share(table);
  for (const auto& [key, sums] : rows) {
    if (sums.bytes == 0) continue;
    table.rows.push_back({device,
                          std::get<0>(key),
                          text_or_null(std::get<1>(key)),
                          text_or_null(std::get<2>(key)),
                          number(sums.bytes),
                          {},
                          sums.count ? number(sums.count) : Value(),
                          peak_at});
  }
  return processes > 0;
}

void fill_by_pool(const DeviceMemoryTotal& memory, Table& table) {
  std::map<AllocKind, PeakSums> kinds;
  for (const PeakPart& part : memory.at_peak) {
    kinds[part.kind].bytes += part.bytes;
    kinds[part.kind].count += part.count;
  }
  if (memory.processes > 1) say_that_several_share(table);
  for (const auto& [kind, sums] : kinds) {
    table.rows.push_back({memory.device,
                          std::string(pool_name(kind)),
                          {},
                          {},
                          number(sums.bytes),
                          {},
                          number(sums.count),
                          memory.peak_at});
  }
}

void fill_memory_peak(const LoadedRun& run, Table& table) {
  if (ledger_has_holes(run)) table.notes.push_back(kHolesInTheLedger);
  const DeviceMap devices(run);
  for (const DeviceMemoryTotal& memory : device_memory(run)) {
    if (!fill_by_tensor(run, devices, memory.device, table)) fill_by_pool(memory, table);
  }
  sort_table(table, "bytes");
}

}  // namespace

extern constexpr SectionReport memory_peak_report = {
    .section = "memory-peak",
    .title = "Device memory at its peak",
    .answers = "what was alive when a device held most: tensors by kind, line and operation",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {extra({"device", Unit::None}),
                {"kind", Unit::Text},
                {"site", Unit::Text},
                {"op", Unit::Text},
                {"bytes", Unit::Bytes},
                {"requested_bytes", Unit::Bytes},
                {"count", Unit::Count},
                extra({"peak_at_ns", Unit::Nanos, Hint::Detail})},
    .notes = {"with PyTorch: at the peak of what its allocator had given out; the kind of a tensor is told from where "
              "it was "
              "allocated and how long it lived; the rows of a device add up to all that the process had of it",
              "else: at the peak of what the program had from the driver, by pool",
              "bytes = as the allocator rounds them; what was requested is not told"},
    .fill = fill_memory_peak,
};

}  // namespace gputrace
