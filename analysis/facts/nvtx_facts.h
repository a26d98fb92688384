// NVTX ranges of a process, by name and domain.
#pragma once

#include <string>

#include "base/types.h"

namespace gputrace {

inline constexpr const char* kOtherRanges = "(other ranges)";  // those beyond what is kept by name

struct NvtxRangeTotals {
  std::string range, domain;
  u64 count = 0, total_ns = 0;  // ended ones, from begin to end on the host
  u64 unended = 0;              // begun and not ended, or begun before the trace
  // Of the operations that were launched within, by the thread that pushed it: from the begin of the first to the end of the
  // last, summed over ranges.
  u64 device_ns = 0;
  u64 kernels = 0;  // executions among them
  bool pushed = false;
  bool across_threads = false;  // some were begun by nvtxRangeStart
};

}  // namespace gputrace
