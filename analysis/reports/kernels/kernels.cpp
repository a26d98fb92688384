// Kernels: one row per (module and kernel, device, grid, cluster, block, dynamic shared memory); executions, not calls.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/kernels/kernel_callers.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

struct KernelRow {
  const Function* function = nullptr;
  const Device* device_facts = nullptr;
  Value device;
  KernelShape shape;
  TensorCoreVerdict tensor_cores;
  KernelCallers callers;
  bool judged = false;
  u64 executions = 0;
  Distribution times;
};

Value known(i32 value) { return value < 0 ? Value() : Value(static_cast<i64>(value)); }

std::vector<KernelRow> collect_kernels(const LoadedRun& run) {
  using Key = std::tuple<std::string, std::string, i64, std::string, std::string, std::string, u32>;
  const DeviceMap devices(run);
  const FileNames names(run);
  std::map<Key, KernelRow> rows;
  for (std::size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessTrace& process = run.processes[p];
    const std::vector<KernelCallers> callers = kernel_callers(process, names);
    for (u32 k = 0; k < process.kernels.size(); ++k) {
      const KernelLaunches& group = process.kernels[k];
      const u64 executions = group.executions();
      if ((executions == 0 && !group.unjoined) || group.shape.function == kNone) continue;
      const Function& function = process.functions[group.shape.function];
      const i32 ordinal = group.shape.context == kNone ? -1 : process.contexts[group.shape.context].device;
      const Value device = devices.number(p, ordinal);
      const std::string name = function.symbol.empty() ? std::to_string(p) + display_name(function) : function.symbol;
      const Key key{image_key(process, function.module),
                    name,
                    is_null(device) ? -1 : std::get<i64>(device),
                    triple(group.shape.grid),
                    triple(group.shape.block),
                    triple(group.shape.cluster),
                    group.shape.dynamic_shared};
      KernelRow& row = rows[key];
      if (!row.function || (row.function->registers < 0 && function.registers >= 0)) row.function = &function;
      if (!row.device_facts) row.device_facts = DeviceMap::facts(process, ordinal);
      if (!row.judged || (!row.tensor_cores.used && !function.code.empty())) {
        row.tensor_cores = tensor_core_verdict(process, k, DeviceMap::facts(process, ordinal));
        row.judged = true;
      }
      row.device = device;
      row.shape = group.shape;
      row.executions += executions;
      row.times.merge(group.times.durations);
      row.callers.add(callers[k]);
    }
  }
  std::vector<KernelRow> sorted;
  sorted.reserve(rows.size());
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.times.sum() != b.times.sum() ? a.times.sum() > b.times.sum() : a.executions > b.executions;
  });
  return sorted;
}

// What the times are over, and what of them is missing.
void add_time_notes(const LoadedRun& run, const DeviceTotals& totals, const std::vector<KernelRow>& rows,
                    Table& table) {
  const std::string why = why_no_device_times(run);
  if (!device_collected(run)) {
    table.notes.push_back("kernel times are not known: " + why + "; the order is by executions");
    return;
  }
  table.notes.push_back(
      "times are the device's; share = of the time of all kernels, summed (kernels that ran at the same time count "
      "each)");
  u64 executions = 0;
  for (const KernelRow& row : rows) executions += row.executions;
  if (executions > totals.kernels) {
    table.notes.push_back("the device reported " + std::to_string(totals.kernels) + " of " +
                          std::to_string(executions) +
                          " executions: times are over those (replays of graphs that are seen as a whole have no times "
                          "by kernel: GPUTRACE_GRAPHS=node)");
  }
  if (!why.empty()) table.notes.push_back("times of some processes are missing: " + why);
}

void fill_kernels(const LoadedRun& run, Table& table) {
  const bool timed = device_collected(run);
  if (timed) table.title = "Kernels by total time";
  table.sort = timed ? "total_ns" : "launches";
  const DeviceTotals totals = device_totals(run);
  const std::vector<KernelRow> rows = collect_kernels(run);
  add_time_notes(run, totals, rows, table);
  const std::string no_code = why_no_code(run);
  table.notes.push_back(no_code.empty() ? "tensor_core = its machine code has matrix instructions; precision = input "
                                          "type of those (the widest), else of "
                                          "most floating-point instructions, else of the library call"
                                        : "tensor_core and precision are not told: " + no_code);
  const u64 wall = static_cast<u64>(run.wall_end - run.wall_begin);
  i64 rank = 0;
  for (const KernelRow& row : rows) {
    Row cells(table.columns.size());
    const auto set = [&](const char* key, Value value) {
      cells[static_cast<std::size_t>(table.column(key))] = std::move(value);
    };
    const auto* cluster = row.shape.cluster;
    set("rank", ++rank);
    set("name", name_of(*row.function).brief);
    set("kernel", display_name(*row.function));
    set("symbol", symbol_of(*row.function));
    set("device", row.device);
    set("grid", triple(row.shape.grid));
    if (cluster[0] || cluster[1] || cluster[2]) set("cluster", triple(row.shape.cluster));
    set("block", triple(row.shape.block));
    set("registers", known(row.function->registers));
    set("static_shared_bytes", known(row.function->static_shared));
    set("dynamic_shared_bytes", number(static_cast<u64>(row.shape.dynamic_shared)));
    set("local_bytes", known(row.function->local_bytes));
    const Residency residency = residency_of(row.device_facts, *row.function, row.shape);
    if (residency.occupancy) {
      set("occupancy", residency.occupancy->ratio);
      set("occupancy_limit", std::string(occupancy_limit_name(residency.occupancy->limit)));
      set("blocks_per_sm", number(residency.occupancy->blocks_per_sm));
    }
    if (residency.waves) {
      set("waves", residency.waves->waves);
      set("tail", residency.waves->tail);
    }
    set("category",
        std::string(category_name(categorize(name_of(*row.function), evidence_of(*row.function)).category)));
    const TensorCoreVerdict& verdict = row.tensor_cores;
    if (verdict.used) set("tensor_core", *verdict.used);
    if (!verdict.kind.empty()) set("tensor_core_kind", verdict.kind);
    if (verdict.eligible) set("tensor_core_eligible", *verdict.eligible);
    if (!verdict.reason.empty()) set("tensor_core_reason", verdict.reason);
    if (!verdict.precision.empty()) set("precision", verdict.precision);
    if (const std::string op = row.callers.operation(); !op.empty()) set("op", op);
    if (const std::string site = row.callers.site(); !site.empty()) set("site", site);
    if (row.executions) set("launches", number(row.executions));
    if (row.times.count()) {
      set("total_ns", number(row.times.sum()));
      set("mean_ns", number(row.times.mean()));
      set("median_ns", number(row.times.percentile(0.5)));
      set("min_ns", number(row.times.min()));
      set("max_ns", number(row.times.max()));
      set("p99_ns", number(row.times.percentile(0.99)));
      if (const auto share = ratio(row.times.sum(), totals.kernel_ns)) set("share", *share);
      if (const auto share = ratio(row.times.sum(), wall)) set("wall_share", *share);
      if (row.times.approximate()) {
        for (const char* key : {"median_ns", "p99_ns"})
          table.columns[static_cast<std::size_t>(table.column(key))].approximate = true;
      }
    }
    table.rows.push_back(std::move(cells));
  }
}

}  // namespace

extern constexpr SectionReport kernels_report = {
    .section = "kernels",
    .title = "Kernels by executions",
    .answers =
        "kernel (`name`: short form, `kernel`: whole) and launch shape: times, registers, shared memory, occupancy "
        "with its limit, blocks per multiprocessor, waves, tail, category, executions",
    .shown = Shown::Filled,
    .needs = {Need::Calls},
    .columns = {{"rank", Unit::Count},
                extra({"name", Unit::Text, Hint::Name}),
                {"total_ns", Unit::Nanos},
                {"share", Unit::Ratio},
                {"launches", Unit::Count},
                {"mean_ns", Unit::Nanos},
                {"grid", Unit::Text},
                {"block", Unit::Text},
                {"occupancy", Unit::Ratio},
                {"tensor_core", Unit::Boolean},
                {"precision", Unit::Text},
                {"registers", Unit::Count},
                extra({"category", Unit::Text}),
                {"median_ns", Unit::Nanos},
                {"p99_ns", Unit::Nanos},
                {"min_ns", Unit::Nanos},
                {"max_ns", Unit::Nanos},
                {"device", Unit::None},
                {"tensor_core_kind", Unit::Text},
                {"tensor_core_eligible", Unit::Boolean},
                extra({"occupancy_limit", Unit::Text}),
                extra({"blocks_per_sm", Unit::Count}),
                extra({"waves", Unit::None}),
                extra({"tail", Unit::Ratio}),
                {"static_shared_bytes", Unit::Bytes},
                {"dynamic_shared_bytes", Unit::Bytes},
                {"local_bytes", Unit::Bytes},
                {"op", Unit::Text},
                extra({"site", Unit::Text}),
                {"kernel", Unit::Text, Hint::Detail},
                {"symbol", Unit::Text, Hint::Detail},
                extra({"cluster", Unit::Text, Hint::Detail}),
                extra({"tensor_core_reason", Unit::Text, Hint::Detail}),
                extra({"wall_share", Unit::Ratio, Hint::Detail})},
    .notes =
        {"launches = executions: plain launches plus graph nodes x replays; occupancy = theoretical, of the warps that "
         "a "
         "multiprocessor holds; waves = blocks of the grid / blocks that the device holds at once; tail = share of the "
         "places that the last wave leaves empty; op, site = the operation of the framework and the program's line "
         "that "
         "launched most of its time; of replays of graphs those that captured it, where no time is known those that "
         "captured most"},
    .fill = fill_kernels,
};

}  // namespace gputrace
