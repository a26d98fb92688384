// What of each kernel's time a change of it would save: matrix units instead of ordinary arithmetic, a last wave of blocks that is full,
// tiles that end where the result does; conversions between layouts that are not there. Upper bounds: as if kernels were bound by what is
// changed.
#pragma once

#include <functional>
#include <optional>

#include "analysis/kernels/tensor_cores.h"

namespace gputrace {

// Whether the kernel does products without matrix units that it could use, and which change that would be.
std::optional<WhatIf> matrix_change(const TensorCoreVerdict& verdict);

// The last wave of a kernel that has few of them, and which of them is not full; nothing: else, or not known.
struct LastWave {
  double waves = 0, part = 0;  // part: of the kernel's time, in which multiprocessors are empty
};
std::optional<LastWave> last_wave(const JudgedKernel& kernel);

// Gives each call of a library whose product the kernel computed, with the share of its tiles that lies outside of the result.
void for_each_tiled(const JudgedKernel& kernel,
                    const std::function<void(const LibraryUse& use, const LibraryShape& call, double outside)>& visit);

// Any thread.
KernelChanges kernel_changes(const ProcessTrace& process);

}  // namespace gputrace
