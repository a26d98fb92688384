// A device that does nothing for a good part of its time, and what most of that is.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/advice/advice.h"
#include "analysis/facts/kind_names.h"
#include "analysis/findings/rules.h"
#include "analysis/findings/waits/host_gaps.h"
#include "analysis/gains/gains.h"
#include "analysis/lines/sites.h"
#include "analysis/run/input_wait.h"
#include "analysis/run/processor_use.h"
#include "analysis/words/human.h"

namespace gputrace {

namespace {

// Of what is not known, most is this: nothing was before it in the program, and the device began it tens of times later than it does elsewhere in the run. (On an
// H100 that seven processes shared, 98 % of the idle time in a loop of one of them.)
bool begins_late(const DeviceTimes& device) {
  constexpr u64 kLong = 20'000;
  const IdleSum& unknown = device.causes[static_cast<unsigned>(IdleCause::Unknown)];
  return unknown.count != 0 && unknown.total_ns / unknown.count >= kLong;
}

std::string fix_of(IdleCause cause, const DeviceTimes& device, const ProcessTrace& process) {
  switch (cause) {
    case IdleCause::Unknown:
      return begins_late(device)
                 ? "see what else uses the device meanwhile (nvidia-smi): it began late what was launched "
                   "in time, and nothing of this process was before it"
                 : "";
    case IdleCause::Host:
      return advise(Advice::WorkAhead, process);
    case IdleCause::Library:
      return "look at what the library does on the host: plans and handles are made once, before the loop";
    case IdleCause::OtherStream:
      return "start earlier what the stream waits for, or give it work that does not depend on it";
    case IdleCause::Peer:
      return "divide the work evenly over the devices, or let each have the next piece while it waits (more, smaller "
             "batches in flight)";
    case IdleCause::HostFunction:
      return "keep functions of the host out of streams that have work behind them";
    default:
      return "";  // has a finding of its own, or nothing is to be done
  }
}

std::optional<WhatIf> change_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::Host:
    case IdleCause::Library:
      return WhatIf::HostWork;
    case IdleCause::Launch:
      return WhatIf::Launches;
    case IdleCause::Synchronization:
      return WhatIf::Waits;
    case IdleCause::Polling:
      return WhatIf::Polling;
    case IdleCause::Copy:
      return WhatIf::Copies;
    case IdleCause::Allocation:
      return WhatIf::Allocations;
    case IdleCause::ModuleLoad:
      return WhatIf::Modules;
    case IdleCause::HostFunction:
      return WhatIf::HostFunctions;
    default:
      return {};
  }
}

IdleCause largest_cause(const DeviceTimes& device) {
  std::array<u64, kIdleCauses> parts{};
  for (unsigned i = 0; i < kIdleCauses; ++i) parts[i] = device.causes[i].total_ns;
  parts[static_cast<unsigned>(IdleCause::Collection)] = 0;  // not the program's
  return static_cast<IdleCause>(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

// What the host does in its gaps would be done beside the device's work, had it not waited before (for the device, or for a processor):
// then the finding of those waits comes first.
const char* wait_behind(const ProcessTrace& process, u64 host_ns) {
  const auto work = gain_of(process, WhatIf::HostWork);
  if (!work || !is_good_part(*work, host_ns)) return nullptr;
  const auto hides_half = [&](WhatIf what) { return 2 * gain_of(process, what).value_or(0) >= *work; };
  if (process.loops.needless_waits >= kLoopTimes && hides_half(WhatIf::Waits)) return "needless-synchronization";
  if (process.loops.result_waits >= kLoopTimes && hides_half(WhatIf::Results)) return "result-waits";
  if (2 * gain_of_processors(process) >= *work) return "busy-processors";
  if (process.allocation_loop.between_launches >= kLoopTimes && hides_half(WhatIf::Allocations))
    return "allocation-in-loop";
  return nullptr;
}

void lower_gain(Finding& finding, u64 by) {
  if (by == 0) return;
  finding.gain_ns -= std::min(finding.gain_ns, by);
  for (auto& [name, value] : finding.evidence) {
    if (name == "gain_ns") value = number(finding.gain_ns);
  }
}

// What the line has of the host's time, where that is the cause and the line has not nearly all, and what it spends that in.
void say_line(const IdleSite& site, u64 cause_ns, Finding& finding) {
  constexpr double kNearlyAll = 0.95, kWorthALine = 0.1;
  const double share = static_cast<double>(site.host_ns) / static_cast<double>(cause_ns);
  if (site.site.empty() || site.host_ns == 0 || share >= kNearlyAll) return say_within(site.within, finding);
  finding.text +=
      fmt::format(", {:.0f} % of it {} {}", share * 100, site.sampled ? "at" : "before calls of", site.site);
  finding.evidence.emplace_back("site_share", share);
  say_within(site.within, finding, " (", ")");
  if (share > 0.5) return;
  for (std::size_t i = 0; i < site.further.size(); ++i) {  // none of them is most
    const auto& [line, host_ns] = site.further[i];
    const double part = static_cast<double>(host_ns) / static_cast<double>(cause_ns);
    if (part < kWorthALine) break;
    finding.text += fmt::format(", {:.0f} % at {}", part * 100, line);
    finding.evidence.emplace_back(fmt::format("site_{}", i + 2), line);
    finding.evidence.emplace_back(fmt::format("site_{}_share", i + 2), part);
  }
}

std::optional<Finding> judge_device(const ProcessTrace& process, const DeviceTimes& device) {
  if (misses_records(process)) return {};
  const double span = static_cast<double>(device.span_ns());
  const u64 profiler = device.causes[static_cast<unsigned>(IdleCause::Collection)].total_ns;
  const double idle = static_cast<double>(device.idle_ns - profiler);
  if (span <= 0 || idle <= (1 - kBusyShare) * span) return {};
  if (is_unsure(device)) return {};
  const IdleCause cause = largest_cause(device);
  const u64 most = device.causes[static_cast<unsigned>(cause)].total_ns;
  Finding finding{
      "idle-gaps",
      idle >= kProblemShare * span   ? Severity::Problem
      : idle >= kWarningShare * span ? Severity::Warning
                                     : Severity::Hint,
      "idle-causes",
      fmt::format(
          "device {} is idle {} of {} ({:.0f} %{}) in {} gaps; most of it: {}, {}", device.device,
          human_nanos(static_cast<Nanos>(idle)), human_nanos(static_cast<Nanos>(span)), idle / span * 100,
          profiler ? fmt::format(", without {} that tracing took", human_nanos(static_cast<Nanos>(profiler))) : "",
          human_count(device.gaps), idle_cause_name(cause), human_nanos(static_cast<Nanos>(most))),
      fix_of(cause, device, process),
      {{"device", static_cast<i64>(device.device)},
       {"idle_ns", number(static_cast<u64>(idle))},
       {"span_ns", number(device.span_ns())},
       {"share", idle / span},
       {"gaps", number(device.gaps)},
       {"longest_ns", number(device.longest.empty() ? u64{0} : device.longest.front().length())},
       {"cause", std::string(idle_cause_name(cause))},
       {"cause_ns", number(most)}}};
  if (profiler) finding.evidence.emplace_back("left_out_profiler_ns", number(profiler));
  const u64 between = device.between_launches.total_ns;
  const u64 launching = between + device.causes[static_cast<unsigned>(IdleCause::Launch)].total_ns;
  const bool launch_bound = cause == IdleCause::Host && launch_share(device) >= kLaunchBound;
  const bool launches_are_most = launch_bound && launching > most - between;
  IdleSite site = site_of_idle(process, cause);
  const IdleSite beside = launches_are_most ? site_of_idle(process, cause, true) : IdleSite{};
  const bool works_beside = is_good_part(beside.in_long_ns, most);
  if (works_beside) {
    site = beside;
    finding.text += "; " + human_nanos(static_cast<Nanos>(beside.in_long_ns)) + " of that in gaps longer than 1 ms" +
                    (site.site.empty() ? "" : ", at " + site.site);
    finding.evidence.emplace_back("long_gaps_ns", number(beside.in_long_ns));
  }
  finding.site = site.site;
  if (works_beside)
    say_within(site.within, finding);
  else
    say_line(site, most, finding);
  const u64 from_outside = cause == IdleCause::Host ? say_host_time(process, device, site, most, finding) : 0;
  if (cause == IdleCause::Host && say_new_threads(device, most, finding)) return finding;
  const auto input = input_wait_of(process.steps);
  if (cause == IdleCause::Host && input && 2 * input->batches_ns > most) {  // input-bound has the fix
    finding.severity = Severity::Hint;
    finding.text += "; most of that waits for the next batch";
    finding.fix.clear();
    return finding;
  }
  if (2 * static_cast<double>(gain_of_compiling(process)) > idle) {  // recompilation has the fix
    finding.severity = Severity::Hint;
    finding.text += "; in most of it the program compiles";
    finding.fix.clear();
    return finding;
  }
  const u64 compiling = cause == IdleCause::Host ? say_compiling(process, most, finding) : 0;
  if (launch_bound) {
    if (is_good_part(between, most))
      finding.text += fmt::format("; {} of that lies between launches that follow each other (launch-bound)",
                                  human_nanos(static_cast<Nanos>(between)));
    finding.evidence.emplace_back("between_launches_ns", number(between));
  }
  if (launches_are_most && !works_beside) {
    finding.severity = Severity::Hint;
    finding.fix.clear();
    return finding;
  }
  const char* const behind = cause == IdleCause::Host ? wait_behind(process, most) : nullptr;
  if (behind) {
    finding.severity = Severity::Hint;
    finding.text +=
        fmt::format("; without the waits ({}) the host would do most of that beside the device's work", behind);
  }
  if (const auto change = change_of(cause)) set_gain(finding, process, *change);
  lower_gain(finding, from_outside);
  if (cause == IdleCause::Host) lower_gain(finding, gain_of_anomaly_detection(process));  // promised there
  if (compiling !=
      0) {  // what the fix is about, none of what launching less brings, nor of what recompilation promises
    const u64 once = compiling - std::min(compiling, gain_of_compiling(process));
    lower_gain(finding, finding.gain_ns - std::min(finding.gain_ns, once));
    return finding;
  }
  // A gain is promised once: what launching less brings is not this finding's. Long gaps are no part of that: one graph keeps them.
  if (works_beside) {
    lower_gain(finding, finding.gain_ns - std::min(finding.gain_ns, beside.in_long_ns));
  } else if (launch_bound && finding.gain_ns != 0) {
    lower_gain(finding, gain_of(process, WhatIf::Launches).value_or(0));
    if (finding.gain_ns == 0) finding.severity = Severity::Hint;  // all of it is promised there
  }
  return finding;
}

// The device that is idle longest; one that waits for another device only where no other is idle.
std::optional<Finding> judge_idle_gaps(const ProcessTrace& process) {
  std::optional<Finding> worst;
  std::pair<bool, u64> most{false, 0};
  for (const DeviceTimes& device : process.device.devices) {
    auto made = judge_device(process, device);
    if (!made) continue;
    const std::pair<bool, u64> rank{largest_cause(device) != IdleCause::Peer, device.idle_ns};
    if (rank > most) worst = std::move(made), most = rank;
  }
  return worst;
}

// Findings of one cause: they say what to do about it.
std::vector<std::string> findings_of(const std::string& cause) {
  static const std::pair<IdleCause, std::vector<std::string>> kOwn[] = {
      {IdleCause::Host, {"straggler"}},
      {IdleCause::Launch, {"launch-bound", "graph-candidates", "short-kernels"}},
      {IdleCause::Synchronization, {"needless-synchronization", "result-waits"}},
      {IdleCause::Polling, {"polling"}},
      {IdleCause::Copy, {"synchronous-copies", "pageable-async-copies", "exposed-copies", "synchronous-memsets"}},
      {IdleCause::Allocation, {"allocation-in-loop"}},
      {IdleCause::ModuleLoad, {"code-loading"}}};
  for (const auto& [own, ids] : kOwn) {
    if (cause == idle_cause_name(own)) return ids;
  }
  return {};
}

// Where the largest cause has a finding of its own that promises most of it, this one does not promise it again.
void leave_gain_to_others(const Findings& others, Finding& gaps) {
  constexpr double kAsMuch = 0.75;
  const Value cause = evidence_of(gaps, "cause");
  if (gaps.gain_ns == 0 || !std::holds_alternative<std::string>(cause)) return;
  const auto ids = findings_of(std::get<std::string>(cause));
  for (const Finding& other : others) {
    if (std::find(ids.begin(), ids.end(), other.id) == ids.end()) continue;
    if (evidence_of(other, "pid") != evidence_of(gaps, "pid")) continue;
    if (static_cast<double>(other.gain_ns) < kAsMuch * static_cast<double>(gaps.gain_ns)) continue;
    gaps.gain_ns = 0;
    gaps.severity = Severity::Hint;
    gaps.text += fmt::format(" ({})", other.id);
    return;
  }
}

void find_idle_gaps(const LoadedRun& run, Findings& found) {
  Findings own;
  add_worst(run, own, judge_idle_gaps);
  for (Finding& gaps : own) leave_gain_to_others(found, gaps), found.push_back(std::move(gaps));
}

}  // namespace

extern constexpr FindingRule idle_gaps_rule = {
    .findings = {{"idle-gaps", "a device that is idle for more than 2 % of its time, and the largest cause of it"}},
    .needs = {Need::Calls, Need::Device},
    .find = find_idle_gaps,
    .of_the_loop = true,
};

}  // namespace gputrace
