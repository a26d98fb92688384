#include "analysis/kernels/model_flops.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernels/peaks.h"
#include "analysis/run/devices.h"

namespace gputrace {
namespace {

constexpr double kLeftOut = 0.01;  // of the FLOPs: those of an arithmetic whose peak is not known (sparse products)

struct FlopsSum {
  u64 calls = 0, captured = 0, untold = 0, without_peak = 0;
  double flops = 0, flops_without_peak = 0, seconds = 0;
};

void add(const ProcessTrace& process, FlopsSum& sum) {
  const std::vector<const Device*> devices = devices_of_rows(process);
  for (std::size_t i = 0; i < process.library.rows.size(); ++i) {
    const LibraryRow& row = process.library.rows[i];
    if (row.shape.kind == LibraryKind::Other || row.shape.kind == LibraryKind::Collective) continue;
    sum.captured += row.captured_calls;
    const u64 executed = row.calls - std::min(row.calls, row.captured_calls);
    if (executed == 0) continue;
    sum.calls += executed;
    const u64 flops = flops_of(row.shape);
    const double peak = devices[i] ? peak_flops(*devices[i], arithmetic_of(row.shape)) : 0;
    const double of_all = static_cast<double>(flops) * static_cast<double>(executed);
    sum.flops += of_all;
    if (flops == 0) {
      sum.untold += executed;
    } else if (peak <= 0) {
      sum.without_peak += executed;
      sum.flops_without_peak += of_all;
    } else {
      sum.seconds += of_all / peak;
    }
  }
}

}  // namespace

ModelFlops model_flops(const LoadedRun& run, u64 span_ns) {
  const bool collected = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const ProcessTrace& process) { return process.library.collected; });
  if (!collected) return {{}, "needs the shapes of library calls: GPUTRACE_COLLECT=+libs"};
  FlopsSum sum;
  for (const ProcessTrace& process : run.processes) add(process, sum);
  if (sum.captured)
    return {{}, "products were captured into graphs: how often their graphs ran them is not told by library calls"};
  if (sum.calls == 0) return {{}, "no product, convolution or transform by a library that is known"};
  if (sum.untold) return {{}, fmt::format("the FLOPs of {} of {} calls are not known", sum.untold, sum.calls)};
  if (sum.flops_without_peak > kLeftOut * sum.flops)
    return {{}, fmt::format("the device's peak is not known for {} of {} calls", sum.without_peak, sum.calls)};
  if (span_ns == 0) return {{}, "needs device times"};
  return {sum.seconds / (static_cast<double>(span_ns) * 1e-9),
          fmt::format("{:.3g} FLOPs of {} products, convolutions and transforms of vendor libraries, at the peak of "
                      "their types, of the devices' span; kernels of others are not in it{}",
                      sum.flops, sum.calls,
                      sum.without_peak ? fmt::format(", nor {} calls whose peak is not known", sum.without_peak) : "")};
}

}  // namespace gputrace
