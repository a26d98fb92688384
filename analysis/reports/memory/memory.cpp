// Memory: allocations by device and pool, with the largest sum that was live at once.
#include <algorithm>
#include <map>

#include "analysis/reports/section_report.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"

namespace gputrace {
namespace {

constexpr const char* kFrameworkPool = "PyTorch";

// Of one device and pool, in all processes.
struct PoolRow {
  Value device;
  u64 allocations = 0, frees = 0, live = 0;
  u64 peak_bytes = 0, highest = 0;  // the sum of the processes' own peaks, and the largest of these
  Nanos peak_at = 0;                // of that one
  u64 reserved = 0;                 // by a framework's allocator, at its peak
  bool is_framework = false;
  u64 certain_peak = 0, certain_live = 0;  // where records were lost
  u64 capacity = 0;
  std::size_t processes = 0;

  // What pools and frameworks' allocators have alike.
  template <typename Memory>
  void add(const Memory& memory, u64 live_bytes) {
    allocations += memory.allocations;
    frees += memory.frees;
    live += live_bytes;
    peak_bytes += memory.peak_bytes;
    if (memory.peak_bytes > highest) highest = memory.peak_bytes, peak_at = memory.peak_at;
    ++processes;
  }
};

class PoolRows {
 public:
  explicit PoolRows(const LoadedRun& run) : devices_(run) {}

  void add(std::size_t number, const ProcessTrace& process) {
    const bool lost = process.dropped != 0 || !process.damage.empty();
    for (const MemoryPool& pool : process.pools) {
      PoolRow& row = row_of(number, process, pool.device, pool.name);
      row.add(pool, pool.live_bytes);
      row.certain_peak = std::max(row.certain_peak, lost ? pool.certain_peak_bytes : pool.peak_bytes);
      row.certain_live += lost ? pool.certain_live_bytes : pool.live_bytes;
    }
    for (const FrameworkMemory& memory : process.tensors) {
      if (memory.allocations == 0) continue;
      PoolRow& row = row_of(number, process, memory.device, kFrameworkPool);
      row.add(memory, memory.allocated);
      row.is_framework = true;
      row.reserved += memory.peak_reserved_bytes;
    }
  }

  bool any_of_several_processes() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const auto& row) { return row.second.processes > 1; });
  }
  const auto& rows() const { return rows_; }  // by device (-1: none) and pool

 private:
  PoolRow& row_of(std::size_t number, const ProcessTrace& process, i32 ordinal, const std::string& pool) {
    const Value device = devices_.number(number, ordinal);
    PoolRow& row = rows_[{is_null(device) ? -1 : std::get<i64>(device), pool}];
    row.device = device;
    if (const Device* facts = DeviceMap::facts(process, ordinal))
      row.capacity = std::max(row.capacity, facts->memory_bytes);
    return row;
  }

  const DeviceMap devices_;
  std::map<std::pair<i64, std::string>, PoolRow> rows_;
};

void fill_memory(const LoadedRun& run, Table& table) {
  PoolRows pools(run);
  for (std::size_t p = 0; p < run.processes.size(); ++p) pools.add(p, run.processes[p]);
  if (pools.any_of_several_processes())
    table.notes.push_back(
        "several processes share a pool's row: peak = the sum of their own peaks, not all at one time");
  const bool holes = ledger_has_holes(run);
  if (holes) {
    table.notes.push_back("peak and live at end are not known: " + std::string(kHolesInTheLedger));
    table.notes.push_back(
        "at least: what was allocated, and had not been freed when the next record was lost: a lower bound; "
        "the only upper one is the capacity, where memory is not managed");
  }
  for (const auto& [key, row] : pools.rows()) {
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
         "pool's or vmm's; fragmentation = 1 - allocated / reserved at its peak; the driver's own cannot be seen"},
    .fill = fill_memory,
};

}  // namespace gputrace
