// Calls of vendor libraries by shape and type: how often, how many operations, how fast.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/facts/library_rows.h"
#include "analysis/kernels/peaks.h"
#include "analysis/reports/section_report.h"
#include "analysis/run/device_time.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

struct LibraryCallKey {
  std::string library, call, shape, dtype, arithmetic;
  bool operator<(const LibraryCallKey& other) const {
    return std::tie(library, call, shape, dtype, arithmetic) <
           std::tie(other.library, other.call, other.shape, other.dtype, other.arithmetic);
  }
};

struct LibraryCallSum {
  u64 calls = 0, captured = 0, kernels = 0, host_ns = 0;
  u64 device_ns = 0;
  bool timed = true;  // of all its calls
  long double flops = 0;
  bool flops_known = true;
  double possible = 0;  // what the devices could have computed in device_ns
  bool peak_known = true;
};

bool is_shown(const LibraryRow& row) {
  return row.calls > 0 && (row.shape.kind != LibraryKind::Other || row.kernels + row.captured_kernels > 0);
}

// `device`: that of all its kernels, or nullptr.
void add(LibraryCallSum& sum, const LibraryRow& row, const Device* device, const std::string& arithmetic) {
  const u64 executed = row.calls - std::min(row.calls, row.captured_calls);
  sum.calls += row.calls;
  sum.captured += row.captured_calls;
  sum.kernels += row.kernels;
  sum.host_ns += row.host_ns;
  u64 nanos = 0;
  if (device_time_of(row, nanos))
    sum.device_ns += nanos;
  else if (executed > 0)
    sum.timed = false;
  const u64 flops = flops_of(row.shape);
  sum.flops += static_cast<long double>(flops) * static_cast<long double>(executed);
  sum.flops_known = sum.flops_known && flops != 0;
  const double peak = device ? peak_flops(*device, arithmetic) : 0;
  sum.possible += peak * static_cast<double>(nanos) * 1e-9;
  if (peak <= 0 && nanos > 0) sum.peak_known = false;
}

void fill_libs(const LoadedRun& run, Table& table) {
  std::map<LibraryCallKey, LibraryCallSum> rows;
  u64 graphs = 0;
  for (const ProcessTrace& process : run.processes) {
    const std::vector<const Device*> devices = devices_of_rows(process);
    for (u32 i = 0; i < process.library.rows.size(); ++i) {
      const LibraryRow& row = process.library.rows[i];
      if (!is_shown(row)) continue;
      const std::string& call = library_call_name(process, row);
      const std::string arithmetic = arithmetic_of(row.shape);
      add(rows[{library_of(call), call, shape_text(row.shape), dtype_text(row.shape), arithmetic}], row, devices[i],
          arithmetic);
      graphs += row.captured_calls;
    }
  }
  for (const auto& [key, sum] : rows) {
    const bool timed = sum.timed && sum.device_ns > 0;
    const bool flops = sum.flops_known && sum.calls > sum.captured;
    const bool rate = timed && flops;
    const double seconds = static_cast<double>(sum.device_ns) * 1e-9;
    const bool ratio = rate && sum.peak_known && sum.possible > 0;
    table.rows.push_back({key.library, key.call, text_or_null(key.shape), text_or_null(key.dtype), number(sum.calls),
                          flops ? rounded(sum.flops) : Value(), timed ? number(sum.device_ns) : Value(),
                          rate ? rounded(sum.flops / static_cast<long double>(seconds)) : Value(),
                          ratio ? Value(static_cast<double>(sum.flops) / sum.possible) : Value(),
                          text_or_null(key.arithmetic), number(sum.kernels), number(sum.host_ns),
                          number(sum.captured)});
  }
  if (const std::string why = why_no_device_times(run); !why.empty()) table.notes.push_back("no device times: " + why);
  if (graphs) table.notes.push_back("calls under capture ran nothing: they are counted, without operations and time");
  sort_table(table, "total_ns");
}

}  // namespace

extern constexpr SectionReport libs_report = {
    .section = "libs",
    .title = "Calls of vendor libraries by shape",
    .answers =
        "calls of vendor libraries by shape and type: count, FLOPs, device time of the kernels that they launched, "
        "FLOP/s, share of the device's peak in that arithmetic",
    .shown = Shown::Filled,
    .needs = {Need::Calls, Need::Libraries},
    .columns = {{"library", Unit::Text},
                {"call", Unit::Text, Hint::Name},
                {"shape", Unit::Text},
                {"dtype", Unit::Text},
                {"count", Unit::Count},
                {"flops", Unit::Count, Hint::Large},
                {"total_ns", Unit::Nanos},
                {"flops_per_s", Unit::Count, Hint::Large},
                {"peak_ratio", Unit::Ratio},
                extra({"arithmetic", Unit::Text}),
                extra({"kernels", Unit::Count, Hint::Detail}),
                extra({"host_ns", Unit::Nanos, Hint::Detail}),
                extra({"captured", Unit::Count, Hint::Detail})},
    .notes =
        {"shape: m×n×k of a product, input * filters of a convolution, size of a transform, elements of a collective; "
         "flops = 2 mnk, "
         "complex 8 mnk, sparse 2 nonzeros n; transforms 5 N log2 N, real ones half",
         "total = device time of the kernels that the calls launched; peak_ratio: of SMs × largest clock × dense "
         "operations per cycle "
         "in that arithmetic"},
    .fill = fill_libs,
    .of_all_devices = true,
};

}  // namespace gputrace
