#include "analysis/findings/findings.h"

#include <algorithm>
#include <stdexcept>

#include "analysis/findings/rules.h"
#include "analysis/steps/find_steps.h"

namespace gputrace {

#define GT_FINDING(room, rule) extern const FindingRule rule##_rule;
#include "analysis/findings/list.def"

std::span<const FindingRule* const> all_rules() {
  static constexpr const FindingRule* kRules[] = {
#define GT_FINDING(room, rule) &rule##_rule,
#include "analysis/findings/list.def"
  };
  return kRules;
}

void ask(const FindingRule& rule, const LoadedRun& run, Findings& found) {
  if (why_not_met(rule.needs, run)) return;
  const std::size_t before = found.size();
  rule.find(run, found);
  for (std::size_t i = before; i < found.size(); ++i) {
    const auto same = [&](const FindingKind& kind) { return found[i].id == kind.id; };
    if (std::none_of(rule.findings.begin(), rule.findings.end(), same))
      throw std::logic_error("finding " + found[i].id + " is none that its rule declares");
  }
}

namespace {

// The run within the steps of its processes, where they are known.
LoadedRun loops_of(const LoadedRun& run) {
  LoadedRun loops = run;
  bool first = true;
  for (ProcessTrace& process : loops.processes) {
    if (const auto loop = process.loop) {
      ProcessIdentity who = std::move(process.who);  // its rank may be known from other processes
      process = *loop;
      process.who = std::move(who);
    }
    if (process.end == 0) continue;
    loops.wall_begin = first ? process.begin : std::min(loops.wall_begin, process.begin);
    loops.wall_end = first ? process.end : std::max(loops.wall_end, process.end);
    first = false;
  }
  return loops;
}

const ProcessTrace* process_of(const LoadedRun& run, const Finding& finding) {
  for (const auto& [key, value] : finding.evidence) {
    if (key != "pid") continue;
    for (const ProcessTrace& process : run.processes) {
      if (std::get<i64>(value) == process.who.pid) return &process;
    }
  }
  return main_steps(run);
}

// What each step would gain, and which steps the finding is of. What happens once, and start-up, is no step's.
void tell_steps(const LoadedRun& run, Finding& finding, bool of_the_loop) {
  const ProcessTrace* const process = process_of(run, finding);
  if (!process || !process->steps.found()) return;
  const StepFacts& steps = of_the_loop && process->loop ? process->loop->steps : process->steps;
  const StepStatistics usual = statistics_of(steps);
  if (!of_the_loop) return;
  const bool of_steps = process->loop || share_outside(*process) < kMostOutside;
  if (finding.gain_ns && usual.counted && of_steps) finding.gain_ns_per_step = finding.gain_ns / usual.counted;
  if (!process->loop) return;
  const u64 last = steps.first_number + steps.steps.size() - 1;
  finding.text += " (steps " + std::to_string(steps.first_number) + " to " + std::to_string(last) + ")";
  finding.evidence.emplace_back("first_step", number(steps.first_number));
  finding.evidence.emplace_back("last_step", number(last));
}

Findings ask_all(const LoadedRun& run) {
  Findings found;
  const bool any = std::any_of(run.processes.begin(), run.processes.end(),
                               [](const ProcessTrace& process) { return process.loop != nullptr; });
  std::optional<LoadedRun> loops;
  if (any) loops = loops_of(run);
  for (const FindingRule* rule : all_rules()) {
    const std::size_t before = found.size();
    ask(*rule, rule->of_the_loop && loops ? *loops : run, found);
    for (std::size_t i = before; i < found.size(); ++i) tell_steps(run, found[i], rule->of_the_loop);
  }
  return found;
}

}  // namespace

std::vector<Finding> find_findings(const LoadedRun& run) {
  Findings found = ask_all(run);
  for (Finding& finding : found) {
    const auto told = [](const auto& each) { return each.first == "gain_ns"; };
    if (finding.gain_ns && std::none_of(finding.evidence.begin(), finding.evidence.end(), told))
      finding.evidence.emplace_back("gain_ns", number(finding.gain_ns));
  }
  std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
    if (a.ended_it != b.ended_it) return a.ended_it;
    if (a.severity != b.severity) return a.severity > b.severity;
    // What all other numbers rest on: records that were dropped, files that are damaged.
    const bool data = a.section.compare(0, 7, "quality") == 0, other_data = b.section.compare(0, 7, "quality") == 0;
    if (data != other_data) return data;
    if (a.gain_ns != b.gain_ns) return a.gain_ns > b.gain_ns;
    // What says what to do comes before what only says how much.
    return !a.fix.empty() && b.fix.empty();
  });
  return found;
}

}  // namespace gputrace
