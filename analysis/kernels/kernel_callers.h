// Who had kernels run: the operation and the program's line that asked for most of a kernel's time, and how much of what an
// operation had run used tensor cores.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/lines/named_amounts.h"
#include "analysis/lines/sites.h"

namespace gputrace {

// Device time by operation and by line. `replayed_…`: executions by replays of graphs, by what captured them.
struct KernelCallers {
  NamedAmounts operations, sites;
  NamedAmounts replayed_operations, replayed_sites;

  void add(const KernelCallers& other);
  // The one with most time; where no time is known by any, the one that captured most replays. Empty: none is known, or not of most.
  std::string operation() const { return (operations.has_names() ? operations : replayed_operations).most(); }
  std::string site() const { return (sites.has_names() ? sites : replayed_sites).most(); }
};

// Of each kernel of a process, by its place in ProcessTrace::kernels.
std::vector<KernelCallers> kernel_callers(const ProcessTrace& process, const FileNames& names);

// Kernel time and what of it used tensor cores.
struct TensorCoreShare {
  u64 kernel_ns = 0, tensor_core_ns = 0, not_known_ns = 0;

  void add(const TensorCoreShare& more);
  // Null: no kernel has a time, or of more than a hundredth of that it is not known.
  Value ratio() const;
};
// By the number of the origin; may be shorter than the list of origins.
std::vector<TensorCoreShare> tensor_core_shares(const ProcessTrace& process);

}  // namespace gputrace
