// Products whose sizes are no multiples of what tensor cores take at a time (16 bytes: 8 elements of 16 bits, 16 of 8).
#include <fmt/format.h>

#include <set>

#include "analysis/facts/library_rows.h"
#include "analysis/findings/rules.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

u64 rounded_up(u64 value, u64 unit) { return (value + unit - 1) / unit * unit; }

void find_matmul_dimensions(const LoadedRun& run, Findings& found) {
  u64 calls = 0, nanos = 0, worst_ns = 0, shapes = 0;
  std::string worst, worst_call, advice;
  for (const ProcessTrace& process : run.processes) {
    for (const LibraryRow& row : process.library.rows) {
      const std::string arithmetic = arithmetic_of(row.shape);
      const u64 unit = dimension_unit(arithmetic);
      const LibraryShape& shape = row.shape;
      if (shape.kind != LibraryKind::Matmul || arithmetic == "fp32" || unit == 0) continue;
      if (shape.m <= 1 || shape.n <= 1) continue;  // a matrix-vector product: no sizes make it one of matrices
      const bool even = shape.m % unit == 0 && shape.n % unit == 0 && shape.k % unit == 0;
      u64 time = 0;
      if (even || !device_time_of(row, time)) continue;
      ++shapes;
      calls += row.calls;
      nanos += time;
      if (!worst.empty() && time <= worst_ns) continue;
      worst_ns = time;
      worst = shape_text(shape);
      worst_call = library_call_name(process, row);
      advice = fmt::format("pad to multiples of {} elements: {}×{}×{}", unit, rounded_up(shape.m, unit),
                           rounded_up(shape.n, unit), rounded_up(shape.k, unit));
    }
  }
  const auto share = ratio(nanos, device_totals(run).kernel_ns);
  if (!share || *share < kCostlyShare) return;
  found.push_back(
      {"matmul-dimensions",
       Severity::Warning,
       "libs",
       fmt::format("{} of products {} sizes that tensor cores cannot take whole: {} call{}, {} ({:.0f} % of "
                   "kernel time), most of it {} {}",
                   shapes == 1 ? std::string("1 shape") : fmt::format("{} shapes", shapes),
                   shapes == 1 ? "has" : "have", human_count(calls), calls == 1 ? "" : "s",
                   human_nanos(static_cast<Nanos>(nanos)), *share * 100, worst_call, worst),
       advice,
       {{"shapes", number(shapes)},
        {"calls", number(calls)},
        {"total_ns", number(nanos)},
        {"share", *share},
        {"call", worst_call},
        {"shape", worst}}});
}

}  // namespace

extern constexpr FindingRule matmul_dimensions_rule = {
    .findings = {{"matmul-dimensions", "products whose sizes are no multiples of what tensor cores take at a time"}},
    .needs = {Need::Calls, Need::Device, Need::Libraries},
    .find = find_matmul_dimensions,
};

}  // namespace gputrace
