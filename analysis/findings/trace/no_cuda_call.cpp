// A trace without a single call.
#include "analysis/findings/rules.h"

namespace gputrace {
namespace {

void find_no_cuda_call(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    if (!process.damage.empty()) return;  // there may have been calls
    for (const CallFacts& call : process.calls) {
      if (call.calls) return;
    }
  }
  found.push_back({"no-cuda-call",
                   Severity::Problem,
                   "api",
                   "no CUDA call is in this trace",
                   "is this a CPU run, or was the recorded window empty? try: gputrace doctor",
                   {}});
}

}  // namespace

extern constexpr FindingRule no_cuda_call_rule = {
    .findings = {{"no-cuda-call", "a trace without a single call"}},
    .needs = {Need::Calls},
    .find = find_no_cuda_call,
};

}  // namespace gputrace
