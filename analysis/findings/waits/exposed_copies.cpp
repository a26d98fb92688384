// Copies beside which no kernel runs, and which could run beside one.
#include <fmt/format.h>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

std::optional<Finding> judge_exposed_copies(const ProcessTrace& process) {
  u64 exposed = 0, all = 0;
  for (const DeviceTimes& device : process.device.devices) exposed += device.exposed_copy_ns, all += device.copy_ns;
  const std::optional<u64> gain = gain_of(process, WhatIf::Overlap);
  if (!gain || exposed == 0) return {};
  const auto severity = severity_of(process, *gain);
  if (!severity) return {};
  Finding finding{
      "exposed-copies",
      *severity,
      "copies",
      fmt::format("copies and memsets run {} alone, of {} in all: kernels could run beside copies from and to "
                  "second buffers",
                  human_nanos(static_cast<Nanos>(exposed)), human_nanos(static_cast<Nanos>(all))),
      "copy the next batch on a stream of its own while this one is computed (two buffers, events)",
      {{"exposed_copy_ns", number(exposed)}, {"copy_ns", number(all)}}};
  set_gain(finding, process, WhatIf::Overlap);
  return finding;
}

void find_exposed_copies(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_exposed_copies); }

}  // namespace

extern constexpr FindingRule exposed_copies_rule = {
    .findings = {{"exposed-copies", "copies beside which no kernel runs, and which could run beside one"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_exposed_copies,
    .of_the_loop = true,
};

}  // namespace gputrace
