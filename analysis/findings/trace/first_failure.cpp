// Of several processes that failed, the one that did first: those that follow it are mostly ended by their launcher, or wait in vain.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/findings/rules.h"
#include "analysis/run/quality.h"
#include "analysis/run/runs.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

// A parent that ended well afterwards ended its helpers so (SGLang's engine does at its end), or could do without them. (A launcher that
// started its ranks anew could not.)
bool was_done_with(const ProcessTrace& process, const LoadedRun& run) {
  return process.who.signal != 0 &&
         std::any_of(run.processes.begin(), run.processes.end(), [&](const ProcessTrace& parent) {
           return parent.who.pid == process.who.parent && parent.who.boot_id == process.who.boot_id &&
                  parent.who.end_known && !parent.who.failed && parent.who.end_realtime >= process.who.end_realtime;
         });
}

void find_first_failure(const LoadedRun& run, Findings& found) {
  std::vector<const ProcessTrace*> failed;
  const std::vector<bool> anew = were_started_anew(run.processes);
  bool again = false, in_vain = false;  // they were started anew, and some of those failed too
  for (std::size_t i = 0; i < run.processes.size(); ++i) {
    const ProcessTrace& process = run.processes[i];
    again = again || anew[i];
    if (!anew[i] && was_done_with(process, run)) continue;
    in_vain = in_vain || (!anew[i] && (process.who.failed || process.who.died));
    if (process.who.failed) failed.push_back(&process);
  }
  const bool went_on = again && !in_vain;
  if (failed.size() < 2) return;
  const auto earlier = [](const ProcessTrace* a, const ProcessTrace* b) {
    return a->who.end_realtime < b->who.end_realtime;
  };
  std::stable_sort(failed.begin(), failed.end(), earlier);
  const ProcessTrace &first = *failed[0], &next = *failed[1];
  // Workers of a pool may all end with 1 when it is over; whom nobody had to end, no other one's failure ended.
  const bool others_were_ended = std::any_of(failed.begin() + 1, failed.end(),
                                             [](const ProcessTrace* process) { return process->who.signal != 0; });
  if (was_told_to_end(first) || !others_were_ended) return;
  bool hosts = false;
  for (const ProcessTrace& process : run.processes) {
    hosts = hosts || process.who.host != first.who.host;
    // It may have failed before, and nobody knows.
    if (process.who.ended && !process.who.end_known && process.who.end_realtime <= first.who.end_realtime) return;
  }
  const Nanos later = next.who.end_realtime - first.who.end_realtime;
  Finding finding;
  finding.id = "first-failure";
  finding.severity = Severity::Problem;
  finding.section = "run";
  finding.text = fmt::format("{} failed first ({}); {} {} later ({})", name_of(first), first.who.end_reason,
                             name_of(next), human_nanos(later), next.who.end_reason);
  if (failed.size() > 2) finding.text += fmt::format(", and {} more", failed.size() - 2);
  if (went_on) finding.text += "; its launcher started the ranks anew, and they went on";
  if (hosts) finding.text += "; by the clocks of their hosts";
  finding.fix = "look for what " + name_of(first) + " says in its own output: the others mostly end because it did";
  finding.ended_it = !went_on;
  finding.evidence = {{"pid", static_cast<i64>(first.who.pid)},
                      {"end_reason", first.who.end_reason},
                      {"failed", number(static_cast<u64>(failed.size()))},
                      {"processes", number(static_cast<u64>(run.processes.size()))},
                      {"next_pid", static_cast<i64>(next.who.pid)},
                      {"next_later_ns", number(static_cast<u64>(later))}};
  found.push_back(std::move(finding));
}

}  // namespace

extern constexpr FindingRule first_failure_rule = {
    .findings = {{"first-failure", "of several processes that failed, the one that did first"}},
    .needs = {},
    .find = find_first_failure,
};

}  // namespace gputrace
