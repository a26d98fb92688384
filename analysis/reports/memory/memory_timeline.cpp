// Allocated bytes of each device after each change.
#include "analysis/reports/section_report.h"
#include "analysis/run/device_memory.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

void fill_memory_timeline(const LoadedRun& run, Table& table) {
  if (ledger_has_holes(run)) table.notes.push_back(kHolesInTheLedger);
  for (const DeviceMemoryTotal& memory : device_memory(run)) {
    if (memory.thinned)
      table.notes.push_back("there were more changes than can be shown: each value is the largest of an interval");
    for (const MemorySample& sample : memory.samples)
      table.rows.push_back({sample.at, memory.device, number(sample.bytes), {}});
  }
}

}  // namespace

extern constexpr SectionReport memory_timeline_report = {
    .section = "memory-timeline",
    .title = "Device memory over time",
    .answers = "allocated bytes of each device after each change",
    .shown = Shown::OnDemand,
    .needs = {Need::Calls},
    .columns = {{"at_ns", Unit::Nanos},
                {"device", Unit::None},
                {"allocated_bytes", Unit::Bytes},
                {"reserved_bytes", Unit::Bytes}},
    .notes =
        {"at = CLOCK_MONOTONIC, in text from the first record on; reserved (what pools hold beyond it) is the driver's "
         "and cannot be seen"},
    .fill = fill_memory_timeline,
};

}  // namespace gputrace
