// Why a device was idle: a rule over the gap, the call of the operation that ended it, and what the launching thread
// did meanwhile. Pure. What cannot be told is Unknown.
#pragma once

#include "analysis/timeline/host_log.h"
#include "analysis/timeline/operations.h"

namespace gputrace {

IdleVerdict judge_gap(const GapContext& context, const HostLog& log);

}  // namespace gputrace
