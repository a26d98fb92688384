// What was allocated when a device held most.
#include <map>

#include "analysis/facts/kind_names.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_memory.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

void fill_memory_peak(const LoadedRun& run, Table& table) {
  if (ledger_has_holes(run)) table.notes.push_back(kHolesInTheLedger);
  for (const DeviceMemoryTotal& memory : device_memory(run)) {
    std::map<AllocKind, std::pair<u64, u64>> kinds;
    for (const PeakPart& part : memory.at_peak) {
      kinds[part.kind].first += part.bytes;
      kinds[part.kind].second += part.count;
    }
    if (memory.processes > 1) {
      table.notes.push_back(
          "several processes shared a device: its rows add up the processes' own peaks, not all at one time");
    }
    for (const auto& [kind, sums] : kinds) {
      table.rows.push_back({memory.device,
                            std::string(pool_name(kind)),
                            {},
                            {},
                            number(sums.first),
                            {},
                            number(sums.second),
                            memory.peak_at});
    }
  }
  sort_table(table, "bytes");
}

}  // namespace

extern constexpr SectionReport memory_peak_report = {
    .section = "memory-peak",
    .title = "Device memory at its peak",
    .answers = "what was alive when a device held most",
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
    .notes = {"site and op need stacks and framework operations, which are not collected in this version",
              "requested = what a framework asked its own allocator for; not collected"},
    .fill = fill_memory_peak,
};

}  // namespace gputrace
