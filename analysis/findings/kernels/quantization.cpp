// Work that does not divide: a last wave of blocks that leaves multiprocessors empty, and output tiles that reach over
// the edge of the matrix.
#include <fmt/format.h>

#include "analysis/facts/library_rows.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/kernels/kernel_changes.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr double kWasteShare = 0.05;  // of all kernel time: less is not worth a word

struct Waste {
  double wasted_ns = 0, worst_ns = 0, worst_part = 0;
  std::string worst, detail;

  void add(double nanos, double part, const std::string& kernel, const std::string& how) {
    const double lost = nanos * part;
    wasted_ns += lost;
    if (lost <= worst_ns) return;
    worst_ns = lost, worst_part = part;
    worst = kernel, detail = how;
  }
};

std::optional<Finding> judge(const ProcessTrace& process, WhatIf what, const char* id, const char* section,
                             const char* says, const char* fix, const Waste& waste) {
  const u64 kernel_ns = kernel_time(process);
  if (kernel_ns == 0 || waste.wasted_ns < kWasteShare * static_cast<double>(kernel_ns)) return {};
  const double share = waste.wasted_ns / static_cast<double>(kernel_ns);
  Finding finding{id,
                  Severity::Hint,
                  section,
                  fmt::format("{}: {} of kernel time ({:.0f} %) at most, most of it {} ({})", says,
                              human_nanos(static_cast<Nanos>(waste.wasted_ns)), share * 100, waste.worst, waste.detail),
                  fix,
                  {{"wasted_ns", number(static_cast<u64>(waste.wasted_ns))},
                   {"share", share},
                   {"kernel", waste.worst},
                   {"kernel_part", waste.worst_part},
                   {"detail", waste.detail}}};
  if (!speeds_up(finding, process, what)) return {};
  return finding;
}

Waste waste_of_waves(const ProcessTrace& process) {
  Waste waste;
  for_each_judged(process, [&](const JudgedKernel& each) {
    const auto last = each.nanos ? last_wave(each) : std::nullopt;
    if (!last) return;
    const u32 function = process.kernels[each.kernel].shape.function;
    waste.add(static_cast<double>(each.nanos), last->part, name_of(process.functions[function]).brief,
              fmt::format("{:.2f} waves", last->waves));
  });
  return waste;
}

Waste waste_of_tiles(const ProcessTrace& process) {
  Waste waste;
  for_each_judged(process, [&](const JudgedKernel& each) {
    if (each.nanos == 0) return;
    const KernelName& name = name_of(process.functions[process.kernels[each.kernel].shape.function]);
    for_each_tiled(each, [&](const LibraryUse& use, const LibraryShape& call, double outside) {
      waste.add(static_cast<double>(use.device_ns), outside, name.brief,
                fmt::format("{} in tiles of {}", shape_text(call), name.tile));
    });
  });
  return waste;
}

void find_quantization(const LoadedRun& run, Findings& found) {
  add_worst(run, found, [](const ProcessTrace& process) {
    return judge(process, WhatIf::Waves, "wave-quantization", "kernels",
                 "the last wave of blocks leaves multiprocessors empty",
                 "choose sizes or a batch whose blocks fill whole waves, or smaller tiles (split-k, stream-k)",
                 waste_of_waves(process));
  });
  add_worst(run, found, [](const ProcessTrace& process) {
    return judge(process, WhatIf::Tiles, "tile-quantization", "libs", "tiles reach over the edges of the result",
                 "choose sizes that are multiples of the tile, or a kernel with smaller tiles",
                 waste_of_tiles(process));
  });
}

}  // namespace

extern constexpr FindingRule quantization_rule = {
    .findings = {{"wave-quantization", "a last wave of blocks that leaves multiprocessors empty"},
                 {"tile-quantization", "output tiles that reach over the edges of the matrix"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_quantization,
    .of_the_loop = true,
};

}  // namespace gputrace
