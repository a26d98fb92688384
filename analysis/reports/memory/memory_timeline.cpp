// Allocated bytes of each device after each change.
#include "analysis/reports/list.h"
#include "analysis/run/device_memory.h"

namespace gputrace {

Table memory_timeline_report(const LoadedTrace& trace) {
  Table table;
  table.section = "memory-timeline";
  table.title = "Device memory over time";
  table.columns = {{"at_ns", Unit::Nanos},
                   {"device", Unit::None},
                   {"allocated_bytes", Unit::Bytes},
                   {"reserved_bytes", Unit::Bytes}};
  table.notes = {
      "at = CLOCK_MONOTONIC, in text from the first record on; reserved (what pools hold beyond it) is the driver's "
      "and cannot be seen"};
  for (const DeviceMemoryTotal& memory : device_memory(trace)) {
    if (memory.thinned)
      table.notes.push_back("there were more changes than can be shown: each value is the largest of an interval");
    for (const MemorySample& sample : memory.samples)
      table.rows.push_back({sample.at, memory.device, number(sample.bytes), {}});
  }
  return table;
}

}  // namespace gputrace
