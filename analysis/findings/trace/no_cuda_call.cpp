// A run that gave a device nothing: without a single call, or with calls that only asked and prepared.
#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/run/quality.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// Also where it cannot be known: records are missing, or only a part of the run was recorded.
bool may_have_given(const ProcessTrace& process) {
  return misses_records(process) || !process.damage.empty() || !process.window.empty() || process.plain_launches ||
         process.graph_launches || process.launches_unsure || !process.copies.empty() ||
         !process.device.devices.empty();
}

// An operation of PyTorch's own, which its processor did where no device was given anything.
bool has_operations(const ProcessTrace& process) {
  const auto& frames = process.lines.frames;
  return std::any_of(frames.begin(), frames.end(), [](const SourceFrame& frame) {
    return frame.file.empty() && frame.function.rfind("aten::", 0) == 0;
  });
}

void find_no_cuda_call(const LoadedRun& run, Findings& found) {
  u64 calls = 0;
  bool damaged = false, may_have = false, operations = false;
  std::string failure;  // of the last that failed
  for (const ProcessTrace& process : run.processes) {
    if (process.who.failed) failure = failure_of(process);
    for (const CallFacts& call : process.calls) calls += call.calls;
    damaged = damaged || !process.damage.empty();  // there may have been calls
    may_have = may_have || may_have_given(process);
    operations = operations || has_operations(process);
  }
  if (calls == 0 && !damaged) {
    found.push_back({"no-cuda-call",
                     Severity::Problem,
                     "api",
                     "no CUDA call is in this trace",
                     "is this a CPU run, or was the recorded window empty? try: gputrace doctor",
                     {}});
  } else if (!may_have) {
    found.push_back({"nothing-launched",
                     Severity::Warning,
                     "api",
                     std::string("the program gave no device anything to do: no launch and no copy among its ") +
                         (calls == 1 ? "one CUDA call" : human_count(calls) + " CUDA calls") +
                         (operations ? "; PyTorch's operations ran on the processor" : "") + failure,
                     failure.empty() ? advise(Advice::UseDevice, operations ? Maker::PyTorch : Maker::General) : "",
                     {{"calls", number(calls)}, {"operations", operations}}});
  }
}

}  // namespace

extern constexpr FindingRule no_cuda_call_rule = {
    .findings = {{"no-cuda-call", "a trace without a single call"},
                 {"nothing-launched", "calls that give no device anything to do: no launch, no copy"}},
    .needs = {Need::Calls},
    .find = find_no_cuda_call,
};

}  // namespace gputrace
