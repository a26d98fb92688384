// Memory: allocations by device and pool, with the largest sum that was live at once.
#include <algorithm>
#include <map>

#include "analysis/reports/section_report.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

constexpr const char* kFrameworkPool = "PyTorch";

void fill_memory(const LoadedRun& run, Table& table) {
  struct PoolRow {
    Value device;
    u64 allocations = 0, frees = 0, peak_bytes = 0, highest = 0, live = 0, capacity = 0;
    u64 reserved = 0;  // by a framework's allocator, at its peak
    bool is_framework = false;
    u64 certain_peak = 0, certain_live = 0;  // where records were lost
    Nanos peak_at = 0;
    std::size_t processes = 0;
  };
  const DeviceMap devices(run);
  std::map<std::pair<i64, std::string>, PoolRow> rows;
  bool summed = false;
  const auto capacity = [](const ProcessTrace& process, i32 device) {
    const Device* facts = DeviceMap::facts(process, device);
    return facts ? facts->memory_bytes : 0;
  };
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    for (const MemoryPool& pool : process.pools) {
      const Value device = devices.number(p, pool.device);
      PoolRow& row = rows[{is_null(device) ? -1 : std::get<i64>(device), pool.name}];
      row.device = device;
      row.allocations += pool.allocations;
      row.frees += pool.frees;
      row.live += pool.live_bytes;
      if (pool.peak_bytes > row.highest) row.highest = pool.peak_bytes, row.peak_at = pool.peak_at;
      summed = summed || row.processes > 0;
      row.peak_bytes += pool.peak_bytes;
      const bool lost = process.dropped != 0 || !process.damage.empty();
      row.certain_peak = std::max(row.certain_peak, lost ? pool.certain_peak_bytes : pool.peak_bytes);
      row.certain_live += lost ? pool.certain_live_bytes : pool.live_bytes;
      ++row.processes;
      row.capacity = std::max(row.capacity, capacity(process, pool.device));
    }
    for (const FrameworkMemory& memory : process.tensors) {
      if (memory.allocations == 0) continue;
      const Value device = devices.number(p, memory.device);
      PoolRow& row = rows[{is_null(device) ? -1 : std::get<i64>(device), kFrameworkPool}];
      row.device = device;
      row.is_framework = true;
      row.allocations += memory.allocations;
      row.frees += memory.frees;
      row.live += memory.allocated;
      if (memory.peak_bytes > row.highest) row.highest = memory.peak_bytes, row.peak_at = memory.peak_at;
      summed = summed || row.processes > 0;
      row.peak_bytes += memory.peak_bytes;
      row.reserved += memory.peak_reserved_bytes;
      ++row.processes;
      row.capacity = std::max(row.capacity, capacity(process, memory.device));
    }
  }
  if (summed)
    table.notes.push_back(
        "several processes share a pool's row: peak = the sum of their own peaks, not all at one time");
  const bool holes = ledger_has_holes(run);
  if (holes) {
    table.notes.push_back("peak and live at end are not known: " + std::string(kHolesInTheLedger));
    table.notes.push_back(
        "at least: what was allocated, and had not been freed when the next record was lost: a lower bound; there is "
        "no "
        "upper one");
  }
  for (const auto& [key, row] : rows) {
    // Every record of a framework's allocator has its totals: what was lost leaves no hole in them.
    const bool known = row.is_framework || !holes;
    table.rows.push_back(
        {row.device, key.second, number(row.allocations), number(row.frees), known ? number(row.peak_bytes) : Value(),
         row.allocations && known ? Value(row.peak_at) : Value(), known ? number(row.live) : Value(),
         row.capacity && !is_null(row.device) ? number(row.capacity) : Value(),
         row.reserved ? Value(1.0 - static_cast<double>(row.peak_bytes) / static_cast<double>(row.reserved)) : Value(),
         known ? Value() : number(row.certain_peak), known ? Value() : number(row.certain_live)});
  }
  sort_table(table, "peak_bytes");
}

}  // namespace

extern constexpr SectionReport memory_report = {
    .section = "memory",
    .title = "Memory by peak",
    .answers = "device and pool: allocations, frees, peak, what is left",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"device", Unit::None},
                {"pool", Unit::Text},
                {"allocations", Unit::Count},
                {"frees", Unit::Count},
                {"peak_bytes", Unit::Bytes},
                {"peak_at_ns", Unit::Nanos, Hint::Detail},
                {"live_at_end_bytes", Unit::Bytes},
                {"capacity_bytes", Unit::Bytes},
                {"fragmentation", Unit::Ratio},
                extra({"peak_at_least_bytes", Unit::Bytes}),
                extra({"live_at_least_bytes", Unit::Bytes})},
    .notes =
        {"bytes that the program asked the driver for; capacity = of the whole device; no device: memory of the host",
         "PyTorch = its caching allocator, which gives out what it has from the driver: its bytes are within device's, "
         "pool's or "
         "vmm's; fragmentation = 1 - allocated / reserved at its peak; the driver's own cannot be seen"},
    .fill = fill_memory,
};

}  // namespace gputrace
