// Who had kernels run: the operation and the program's line that asked for most of a kernel's time, and how much of what an
// operation had run used tensor cores.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/lines/sites.h"

namespace gputrace {

// Device time by operation and by line; what came from neither is in none. `replayed_…`: executions by replays of graphs, by what
// captured them.
struct KernelCallers {
  std::map<std::string, u64> operations, sites;
  std::map<std::string, u64> replayed_operations, replayed_sites;

  void add(const KernelCallers& other);
  // The one with most time; where no time is known by any, the one that captured most replays. Empty: none is known.
  std::string operation() const { return most(operations.empty() ? replayed_operations : operations); }
  std::string site() const { return most(sites.empty() ? replayed_sites : sites); }
  static std::string most(const std::map<std::string, u64>& by_name);
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
