// Work that does not divide: a last wave of blocks that leaves multiprocessors empty, and output tiles that reach over
// the edge of the matrix.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "analysis/facts/library_rows.h"
#include "analysis/findings/rules.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/kernels/tensor_cores.h"
#include "analysis/run/device_time.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr double kWasteShare = 0.05;  // of all kernel time: less is not worth a word
constexpr double kFewWaves = 8;       // beyond them blocks end at different times, and the tail is no full wave's

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

void tell(const char* id, const char* section, const char* what, const char* fix, const Waste& waste, u64 kernel_ns,
          Findings& found) {
  if (kernel_ns == 0 || waste.wasted_ns < kWasteShare * static_cast<double>(kernel_ns)) return;
  const double share = waste.wasted_ns / static_cast<double>(kernel_ns);
  Finding finding{id,
                  share >= 2 * kWasteShare ? Severity::Warning : Severity::Hint,
                  section,
                  fmt::format("{}: {} of kernel time ({:.0f} %) at most, most of it {} ({})", what,
                              human_nanos(static_cast<Nanos>(waste.wasted_ns)), share * 100, waste.worst, waste.detail),
                  fix,
                  {{"wasted_ns", number(static_cast<u64>(waste.wasted_ns))},
                   {"share", share},
                   {"kernel", waste.worst},
                   {"kernel_part", waste.worst_part},
                   {"detail", waste.detail}}};
  finding.gain_ns = static_cast<u64>(waste.wasted_ns);
  found.push_back(std::move(finding));
}

// "128x256x32" → 128, 256; false where the name tells no tile.
bool tile_of(const KernelName& name, u64& m, u64& n) {
  char* end = nullptr;
  m = std::strtoull(name.tile.c_str(), &end, 10);
  if (m == 0 || *end != 'x') return false;
  n = std::strtoull(end + 1, &end, 10);
  return n != 0;
}

// Share of the tiles' area that lies outside of the result, the better of both ways round (row or column major).
double outside(u64 m, u64 n, u64 tile_m, u64 tile_n) {
  const auto covered = [](u64 size, u64 tile) {
    const u64 tiles = (size + tile - 1) / tile;
    return static_cast<double>(tiles * tile);
  };
  const double area = static_cast<double>(m) * static_cast<double>(n);
  const double one = area / (covered(m, tile_m) * covered(n, tile_n));
  const double other = area / (covered(m, tile_n) * covered(n, tile_m));
  return 1 - std::max(one, other);
}

void find_quantization(const LoadedRun& run, Findings& found) {
  Waste waves, tiles;
  for_each_judged(run, [&](const JudgedKernel& each) {
    if (each.nanos == 0) return;
    const KernelShape& shape = each.process.kernels[each.kernel].shape;
    const Function& function = each.process.functions[shape.function];
    const auto residency = residency_of(each.device, function, shape);
    if (residency.waves && residency.waves->waves > 1 && residency.waves->waves <= kFewWaves) {
      waves.add(static_cast<double>(each.nanos), residency.waves->tail, name_of(function).brief,
                fmt::format("{:.2f} waves", residency.waves->waves));
    }
    u64 m = 0, n = 0;
    if (!tile_of(name_of(function), m, n)) return;
    for (const LibraryUse& use : library_uses_of_kernel(each.process, each.kernel)) {
      const LibraryShape& call = each.process.library.rows[use.row].shape;
      if (call.kind != LibraryKind::Matmul || call.m <= 1 || call.n <= 1) continue;
      tiles.add(static_cast<double>(use.device_ns), outside(call.m, call.n, m, n), name_of(function).brief,
                fmt::format("{} in tiles of {}", shape_text(call), name_of(function).tile));
    }
  });
  const u64 kernel_ns = device_totals(run).kernel_ns;
  tell("wave-quantization", "kernels", "the last wave of blocks leaves multiprocessors empty",
       "choose sizes or a batch whose blocks fill whole waves, or smaller tiles (split-k, stream-k)", waves, kernel_ns,
       found);
  tell("tile-quantization", "libs", "tiles reach over the edges of the result",
       "choose sizes that are multiples of the tile, or a kernel with smaller tiles", tiles, kernel_ns, found);
}

}  // namespace

extern constexpr FindingRule quantization_rule = {
    .findings = {{"wave-quantization", "a last wave of blocks that leaves multiprocessors empty"},
                 {"tile-quantization", "output tiles that reach over the edges of the matrix"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_quantization,
};

}  // namespace gputrace
