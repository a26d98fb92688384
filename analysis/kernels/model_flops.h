// How much of what the devices could compute the program's products and convolutions were: MFU, of what calls of vendor libraries tell.
#pragma once

#include <string>

#include "analysis/facts/facts.h"
#include "analysis/table/table.h"

namespace gputrace {

struct ModelFlops {
  Value utilization;  // seconds that their FLOPs take at the devices' peaks / the devices' span; null: not known
  std::string note;   // what it is of, or why it is not known
};
// `span_ns`: of all devices, summed; 0: not known.
ModelFlops model_flops(const LoadedRun& run, u64 span_ns);

}  // namespace gputrace
