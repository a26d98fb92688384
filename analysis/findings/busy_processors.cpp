// A host that is slow because it waits for a processor: others have them.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"
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

double ready_share(const HostThread& thread) {
  const Nanos life = thread.seen - thread.began;
  return life > 0 ? std::min(1.0, static_cast<double>(thread.ready_ns) / static_cast<double>(life)) : 0;
}

std::optional<Finding> judge_busy_processors(const ProcessTrace& process) {
  const HostThread* const thread = busiest_caller(process);
  if (!thread || is_busy(process)) return {};
  const u64 gain = gain_of_processors(process);
  const auto severity = severity_of(process, gain);
  if (!severity) return {};
  Finding finding{"busy-processors",
                  *severity,
                  "threads",
                  fmt::format("the thread that calls CUDA waited {:.0f} % of its life for a processor that others had "
                              "({} waiting, {} running): "
                              "the device waits for it",
                              ready_share(*thread) * 100, human_nanos(static_cast<Nanos>(thread->ready_ns)),
                              human_nanos(static_cast<Nanos>(thread->cpu_ns))),
                  "give it processors of its own: fewer workers and threads than processors, no second job on them, a "
                  "higher limit of "
                  "the container",
                  {{"tid", static_cast<i64>(thread->tid)},
                   {"ready_ns", number(thread->ready_ns)},
                   {"cpu_ns", number(thread->cpu_ns)},
                   {"life_ns", number(static_cast<u64>(thread->seen - thread->began))},
                   {"share", ready_share(*thread)}}};
  finding.gain_ns = gain;
  return finding;
}

void find_busy_processors(const LoadedRun& run, Findings& found) { add_worst(run, found, judge_busy_processors); }

}  // namespace

u64 gain_of_processors(const ProcessTrace& process) {
  const HostThread* const thread = busiest_caller(process);
  const auto work = gain_of(process, WhatIf::HostWork);
  if (!thread || !work) return 0;
  return std::min(*work, static_cast<u64>(ready_share(*thread) * static_cast<double>(span_of(process))));
}

extern constexpr FindingRule busy_processors_rule = {
    .findings = {{"busy-processors", "a thread that could launch and has no processor, while the device waits for it"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_busy_processors,
    .of_the_loop = true,
};

}  // namespace gputrace
