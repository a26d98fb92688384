// Why a device was idle: one cause for each gap, from what the launching thread did since the gap began and from what
// the next operation had to wait for. Pure. What cannot be told is Unknown.
//
//      previous operation │ gap                                        │ next operation
//   ──────────────────────┤G                                           S├──────────────
//     launching thread:  ▒▒sync▒▒│ host code │▒alloc▒│  │▒▒▒launch▒▒▒│
//                                                     B            E
//
//   Parts of the gap, the largest of which names it; they may overlap, as each asks "had this not been, how much of the
//   gap would be gone?":
//   · a call that blocks its thread (synchronization, copy, memset, allocation, module load) and was going on in the
//   gap:
//     its whole length, also before G, for without it the thread would have come that much earlier; at most the gap
//   · waiting for another stream or device: until the operation ended that the next one had to wait for
//   · no call at all (host late), launches of other work, calls that only order work (launch): as long as it took
//   · the launch of the next operation: from B to S, where it was not waiting for its stream; as QueueFull where its
//     stream held kFullQueue operations already; as Copy where the next operation is a copy or memset
//   · what CUPTI reports as overhead of that thread (or, of an untold thread, while it was in a CUDA call) is taken
//   from
//     the part in which it lies: tracing, and the driver's loading, compiling and full command buffer
//   · launched in time and yet not started (E before G, behind its stream): Dispatch up to kDispatch, else Unknown
//   Of equal parts the one listed first counts. IdleVerdict::caused is that part: what the cause cost.
#pragma once

#include "analysis/timeline/host_log.h"
#include "analysis/timeline/operations.h"

namespace gputrace {

// A launch that starts within this time of its call's begin was under way, not waiting: drivers need 3 to 8 us.
inline constexpr Nanos kLaunchWay = 10'000;
// The device goes from one operation to the next within this; HTA's gate between consecutive kernels.
inline constexpr Nanos kDispatch = 30'000;

IdleVerdict judge_gap(const GapContext& context, const HostLog& log);

}  // namespace gputrace
