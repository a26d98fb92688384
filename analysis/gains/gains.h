// What rules ask of gains and of idle time: whose gates are shares of a device's span, by process, never summed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/lines/within.h"
#include "analysis/table/table.h"

namespace gputrace {

// Below the first a finding is silent; from the second on a warning, from the third a problem.
inline constexpr double kHintShare = 0.01, kWarningShare = 0.05, kProblemShare = 0.20;
// A device that is busier gets nothing about idle time, nor one of whose time more is not known than both of these shares: of its span, and of what it is idle.
inline constexpr double kBusyShare = 0.98, kUnknownShare = 0.01, kUnknownOfIdle = 0.1;

// The span of the process's device that did most, of which shares are. 0: none did anything.
u64 span_of(const ProcessTrace& process);
bool is_busy(const ProcessTrace& process);  // ... or not known well enough
bool is_busy(const DeviceTimes& device);
bool is_unsure(const DeviceTimes& device);  // too much of its time is not known
// Whether more than kUnknownShare of its records were dropped: what the host did in a gap is not known then.
bool misses_records(const ProcessTrace& process);

struct IdleShare {
  u64 count = 0, total_ns = 0;
  std::string call;  // with most of it; empty: none is to blame
};
// The line of the program that launched what ended the gaps with most of that cause, among the longest ones (empty: none is
// known), and the function that it calls in which most of that is.
struct IdleSite {
  static constexpr u64 kLongGap = 1'000'000;  // ns
  std::string site;
  Within within;
  // Host's part of all gaps at that line, and of those of the longest ones that are longer than kLongGap.
  u64 host_ns = 0, in_long_ns = 0;
  // Samples found most of it there; else it is the line of the call that ended the gap.
  bool sampled = false;
  // Further lines and Host's part of all gaps there, the largest first; kFurther at most.
  static constexpr std::size_t kFurther = 2;
  std::vector<std::pair<std::string, u64>> further;
};
// The line with most of that cause's idle time; `in_long_gaps`: of that which lies in gaps longer than kLongGap.
IdleSite site_of_idle(const ProcessTrace& process, IdleCause cause, bool in_long_gaps = false);
// Between which two lines of the program, of the longest pause of each idle gap, the host's own work comes to most: the lines of the
// last call before such a pause and of the first one after it; either may be empty: not known.
struct PausedLines {
  std::string after, before;
  u64 length_ns = 0;  // 0: there was none
};
PausedLines lines_of_pauses(const ProcessTrace& process);
// The line before whose launches a device waited most for launches, of all gaps, and that line's share of it.
struct SiteShare {
  std::string site;  // empty: no line is known
  double share = 0;
  Within within;
};
SiteShare site_of_launch_gaps(const ProcessTrace& process);
// Parts of the process's gaps with that cause, over its devices; of calls for which `wanted` holds, where it is given.
IdleShare idle_of(const ProcessTrace& process, IdleCause cause, bool (*wanted)(const std::string& call) = nullptr);

bool is_async_call(const std::string& call);     // "cuMemcpyHtoDAsync"
bool is_blocking_call(const std::string& call);  // the others
bool is_memset_call(const std::string& call);

// What the change would bring, of the whole run; nothing where the run could not be replayed.
std::optional<u64> gain_of(const ProcessTrace& process, WhatIf what);
// The severity that the gain has by its share; nothing: silent.
std::optional<Severity> severity_of(const ProcessTrace& process, u64 gain);

// Gain, what it adds, and the model's error, or why there are none.
void set_gain(Finding& finding, const ProcessTrace& process, WhatIf what);

// Of a pattern that costs only what the replay says: false where it says that it costs nothing. Without device time, or
// where the run could not be replayed, a hint without a gain.
bool costs(Finding& finding, const ProcessTrace& process, WhatIf what);

// Of kernels that a change would make faster: false where the replay says that the run would be as long. Where it
// could not be replayed, a hint without a gain.
bool speeds_up(Finding& finding, const ProcessTrace& process, WhatIf what);

// Of several processes: which one it is of, and how many have one.
void say_whose(Finding& finding, const ProcessTrace& process, u64 processes);

// Adds the finding of the process with the largest gain, and says of how many others there is one.
// `judge(process)`: std::optional<Finding>.
template <typename Judge>
void add_worst(const LoadedRun& run, std::vector<Finding>& found, Judge&& judge) {
  std::optional<Finding> worst;
  const ProcessTrace* whose = nullptr;
  u64 processes = 0;
  for (const ProcessTrace& process : run.processes) {
    std::optional<Finding> made = judge(process);
    if (!made) continue;
    ++processes;
    made->evidence.emplace_back("pid", static_cast<i64>(process.who.pid));
    const auto rank = [](const Finding& each) { return std::pair(each.severity, each.gain_ns); };
    if (!worst || rank(*made) > rank(*worst)) worst = std::move(made), whose = &process;
  }
  if (!worst) return;
  if (run.processes.size() > 1) say_whose(*worst, *whose, processes);
  found.push_back(std::move(*worst));
}

}  // namespace gputrace
