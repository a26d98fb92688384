// What a run would be with a cause taken away, found by replaying it: see replay/what_if.h. Lengths are ns.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/types.h"

namespace gputrace {

// Changes of the recorded run, each with one assumption.
enum class WhatIf : u8 {
  HostWork,       // the launching threads take no time between their calls
  Launches,       // repeated sequences of launches are one launch each
  Waits,          // waits after which nothing is read are not there
  Results,        // results of at most 64 KiB are read later: nobody waits for them
  Polling,        // who asks again and again is told at once
  Copies,         // copies from pageable memory, and those that the host waits for, are pinned and asynchronous
  Allocations,    // allocating and freeing takes 1 us
  Modules,        // code is loaded before
  HostFunctions,  // functions in a stream take no time
  Overlap,        // copies run beside kernels, from and to second buffers
  Tf32,           // products in fp32 are as much faster as matrix units are in tf32
  MatrixUnits,    // products in narrower types are as much faster as matrix units are
  Waves,          // the last wave of blocks is full
  Tiles,          // no tile of a product reaches over its edges
  Layouts,        // kernels that only move tensors from one layout to another take no time
};
inline constexpr unsigned kWhatIfs = 15;
inline constexpr unsigned kFirstOfKernels = static_cast<unsigned>(WhatIf::Tf32);

// Changes of kernels: for each of the what-ifs from kFirstOfKernels on the share of its time that a kernel would save, by index in
// ProcessTrace::kernels. 0, or none: nothing.
struct KernelChanges {
  std::array<std::vector<float>, kWhatIfs - kFirstOfKernels> shares;

  float of(WhatIf what, u32 kernel) const {
    const std::vector<float>& own = shares[static_cast<unsigned>(what) - kFirstOfKernels];
    return kernel < own.size() ? own[kernel] : 0;
  }
  void add(WhatIf what, u32 kernel, double share) {
    if (share <= 0) return;
    std::vector<float>& own = shares[static_cast<unsigned>(what) - kFirstOfKernels];
    if (kernel >= own.size()) own.resize(kernel + 1u);
    own[kernel] = static_cast<float>(share);
  }
};

struct Gain {
  u64 single_ns = 0;  // alone
  u64 added_ns = 0;   // when all with a larger single gain are done before
};

struct GainFacts {
  std::string why_not;  // empty: the run was replayed, and the replay is the run
  u64 operations = 0, operations_of_run = 0;
  u64 launches = 0;           // kernels, memsets, copies on the device and graphs that calls launched
  u64 launches_repeated = 0;  // of them graphs, or in sequences that come again and again in the same order and shapes
  u64 windows = 0;            // 1: in one piece
  u64 measured_ns = 0;        // of the windows: from the first launch call to the end of the last operation
  u64 replayed_ns = 0;        // the same, unchanged
  u64 floor_ns = 0;           // with all changes; added gains and it sum to replayed_ns
  std::array<Gain, kWhatIfs> gains{};

  bool replayed() const { return why_not.empty() && replayed_ns != 0; }
  double model_error_ratio() const {
    const double off = static_cast<double>(replayed_ns) - static_cast<double>(measured_ns);
    return measured_ns ? (off < 0 ? -off : off) / static_cast<double>(measured_ns) : 0;
  }
  const Gain& of(WhatIf what) const { return gains[static_cast<unsigned>(what)]; }
};

}  // namespace gputrace
