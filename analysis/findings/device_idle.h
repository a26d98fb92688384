// What rules ask of the devices' idle time.
#pragma once

#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

struct IdleShare {
  u64 count = 0, total_ns = 0;
  std::string call;  // the call with most of it; empty: none is to blame
};

// Gaps of that cause, over all processes and devices; of calls for which `wanted` holds, where it is given.
IdleShare idle_of(const LoadedRun& run, IdleCause cause, bool (*wanted)(const std::string& call) = nullptr);

IdleShare idle_of(const ProcessTrace& process, IdleCause cause, bool (*wanted)(const std::string& call) = nullptr);

// Sum of the devices' spans: what shares of device time are over. 0: no device time.
u64 device_span_ns(const LoadedRun& run);

bool is_async_call(const std::string& call);     // "cuMemcpyHtoDAsync"
bool is_blocking_call(const std::string& call);  // the others
bool is_memset_call(const std::string& call);

}  // namespace gputrace
