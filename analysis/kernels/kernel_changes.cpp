#include "analysis/kernels/kernel_changes.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "analysis/facts/library_rows.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/names/categories.h"

namespace gputrace {
namespace {

constexpr double kFewWaves = 8;  // beyond them blocks end at different times, and the tail is no full wave's

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

}  // namespace

std::optional<WhatIf> matrix_change(const TensorCoreVerdict& verdict) {
  if (verdict.used != false || verdict.eligible != true) return {};
  const bool fp32 = verdict.reason == "math mode" ? verdict.precision == "fp32" : verdict.reason == "precision";
  return fp32 ? WhatIf::Tf32 : WhatIf::MatrixUnits;
}

std::optional<LastWave> last_wave(const JudgedKernel& kernel) {
  const KernelShape& shape = kernel.process.kernels[kernel.kernel].shape;
  const auto residency = residency_of(kernel.device, kernel.process.functions[shape.function], shape);
  if (!residency.waves || residency.waves->waves <= 1 || residency.waves->waves > kFewWaves) return {};
  return LastWave{residency.waves->waves, residency.waves->tail};
}

void for_each_tiled(const JudgedKernel& kernel,
                    const std::function<void(const LibraryUse& use, const LibraryShape& call, double outside)>& visit) {
  const auto uses = library_uses_of_kernel(kernel.process, kernel.kernel);
  if (uses.empty()) return;
  u64 m = 0, n = 0;
  const u32 function = kernel.process.kernels[kernel.kernel].shape.function;
  if (!tile_of(name_of(kernel.process.functions[function]), m, n)) return;
  for (const LibraryUse& use : uses) {
    const LibraryShape& call = kernel.process.library.rows[use.row].shape;
    if (call.kind != LibraryKind::Matmul || call.m <= 1 || call.n <= 1) continue;
    visit(use, call, outside(call.m, call.n, m, n));
  }
}

KernelChanges kernel_changes(const ProcessTrace& process) {
  static std::mutex names;  // what name_of() and demangle() keep is one thread's at a time
  const std::lock_guard lock(names);
  KernelChanges changes;
  for_each_judged(process, [&](const JudgedKernel& each) {
    if (each.nanos == 0) return;
    if (const auto change = matrix_change(each.verdict)) changes.add(*change, each.kernel, each.verdict.gain);
    if (const auto last = last_wave(each)) changes.add(WhatIf::Waves, each.kernel, last->part);
    const u32 function = process.kernels[each.kernel].shape.function;
    if (only_converts_layout(name_of(process.functions[function]))) changes.add(WhatIf::Layouts, each.kernel, 1);
    double wasted = 0;
    for_each_tiled(each, [&](const LibraryUse& use, const LibraryShape&, double outside) {
      wasted += static_cast<double>(use.device_ns) * outside;
    });
    changes.add(WhatIf::Tiles, each.kernel, std::min(1.0, wasted / static_cast<double>(each.nanos)));
  });
  return changes;
}

}  // namespace gputrace
