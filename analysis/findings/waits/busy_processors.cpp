// A host that is slow because it waits for a processor: others have them.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
#include "analysis/run/processor_use.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// Of the process's own thread that called CUDA most; nullptr: it was never looked at, or the kernel tells no times.
const HostThread* busiest_caller(const ProcessTrace& process) {
  const ThreadFacts* most = nullptr;
  for (const ThreadFacts& thread : process.threads) {
    if (thread.process_wide || thread.tid == 0 || thread.calls == 0) continue;
    if (!most || thread.calls > most->calls) most = &thread;
  }
  if (!most) return nullptr;
  for (const HostThread& thread : process.samples.host_threads) {
    if (thread.process == 0 && thread.tid == most->tid && thread.ready_told) return &thread;
  }
  return nullptr;
}

std::optional<Finding> judge_busy_processors(const ProcessTrace& process) {
  const HostThread* const thread = busiest_caller(process);
  if (!thread || is_busy(process)) return {};
  const ProcessorUse used = used_meanwhile(process, *thread);
  const u64 gain = gain_of_processors(process);
  const auto severity = severity_of(process, gain);
  if (!severity) return {};
  Finding finding{"busy-processors",
                  *severity,
                  "threads",
                  fmt::format("the thread that calls CUDA waited {:.0f} % of its time for a processor that others had "
                              "({} waiting, {} running, of {}): "
                              "the device waits for it",
                              used.share() * 100, human_nanos(static_cast<Nanos>(used.ready_ns)),
                              human_nanos(static_cast<Nanos>(used.cpu_ns)), human_nanos(used.length)),
                  "give it processors of its own: fewer workers and threads than processors, no second job on them, a "
                  "higher limit of "
                  "the container",
                  {{"tid", static_cast<i64>(thread->tid)},
                   {"ready_ns", number(used.ready_ns)},
                   {"cpu_ns", number(used.cpu_ns)},
                   {"looked_ns", number(static_cast<u64>(used.length))},
                   {"share", used.share()}}};
  finding.gain_ns = gain;
  return finding;
}

void find_busy_processors(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_busy_processors); }

}  // namespace

u64 gain_of_processors(const ProcessTrace& process) {
  const HostThread* const thread = busiest_caller(process);
  const auto work = gain_of(process, WhatIf::HostWork);
  if (!thread || !work) return 0;
  const double share = used_meanwhile(process, *thread).share();
  return std::min(*work, static_cast<u64>(share * static_cast<double>(span_of(process))));
}

extern constexpr FindingRule busy_processors_rule = {
    .findings = {{"busy-processors", "a thread that could launch and has no processor, while the device waits for it"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_busy_processors,
    .of_the_loop = true,
};

}  // namespace gputrace
