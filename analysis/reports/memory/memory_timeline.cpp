// Allocated bytes of each device after each change.
#include <algorithm>

#include "analysis/reports/section_report.h"
#include "analysis/run/device_memory.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

// The program's memory of a device, and what a framework's allocator does within it, by time.
struct Change {
  Nanos at = 0;
  bool of_driver = false;
  u64 bytes = 0, reserved = 0;
};

void add_rows(const DeviceMemoryTotal& memory, const FrameworkMemory& framework, Table& table) {
  std::vector<Change> changes;
  for (const MemorySample& sample : memory.samples) changes.push_back({sample.at, true, sample.bytes, 0});
  for (const TensorSample& sample : framework.samples)
    changes.push_back({sample.at, false, sample.allocated, sample.reserved});
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  u64 driver = 0, allocated = 0, reserved = 0;
  for (const Change& change : changes) {
    if (change.of_driver)
      driver = change.bytes;
    else
      allocated = change.bytes, reserved = change.reserved;
    table.rows.push_back({change.at, memory.device, number(allocated), number(reserved), number(driver)});
  }
}

// The framework's on this device, where one process of the run has it.
const FrameworkMemory* framework_of(const LoadedRun& run, const DeviceMap& devices, const Value& device) {
  const FrameworkMemory* found = nullptr;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    for (const FrameworkMemory& memory : run.processes[p].tensors) {
      if (memory.allocations == 0 || devices.number(p, memory.device) != device) continue;
      if (found) return nullptr;
      found = &memory;
    }
  }
  return found;
}

void fill_memory_timeline(const LoadedRun& run, Table& table) {
  if (ledger_has_holes(run)) table.notes.push_back(kHolesInTheLedger);
  const DeviceMap devices(run);
  for (const DeviceMemoryTotal& memory : device_memory(run)) {
    const FrameworkMemory* const framework = framework_of(run, devices, memory.device);
    if (memory.thinned || (framework && framework->thinned))
      table.notes.push_back("there were more changes than can be shown: each value is the largest of an interval");
    if (framework) {
      add_rows(memory, *framework, table);
      continue;
    }
    for (const MemorySample& sample : memory.samples)
      table.rows.push_back({sample.at, memory.device, number(sample.bytes), {}, number(sample.bytes)});
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
                {"reserved_bytes", Unit::Bytes},
                extra({"driver_bytes", Unit::Bytes, Hint::Detail})},
    .notes = {"at = CLOCK_MONOTONIC, in text from the first record on; allocated = by tensors, reserved = by PyTorch's "
              "allocator, "
              "driver = all that the program has of the device; without PyTorch, or with it in several processes on "
              "one device, "
              "allocated = driver, and what the driver's own pools hold beyond it cannot be seen"},
    .fill = fill_memory_timeline,
};

}  // namespace gputrace
