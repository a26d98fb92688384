// The rules behind the findings, and what they share. A rule looks at the loaded traces and adds what it found; it
// never prints and never throws. One row in list.def; findings/ROOM/NAME.cpp defines `FindingRule NAME_rule`.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/findings/findings.h"
#include "analysis/run/host_use.h"
#include "analysis/run/needs.h"
#include "analysis/table/table.h"

namespace gputrace {

using Findings = std::vector<Finding>;

struct FindingKind {
  const char* id;
  const char* says;  // its row in docs/REFERENCE.md, in Markdown
};

struct FindingRule {
  std::initializer_list<FindingKind> findings;  // all that it may add
  Needs needs;                                  // not met: the rule is not asked
  void (*find)(const LoadedRun& run, Findings& found);
  bool of_the_loop = false;  // where steps are known it is asked of those alone: start-up is no part of the loop
};

std::span<const FindingRule* const> all_rules();

// Adds what the rule finds. Throws std::logic_error where it is none of the rule's own: a mistake in `find`.
void ask(const FindingRule& rule, const LoadedRun& run, Findings& found);

// Gates: below them a pattern is start-up, not a loop.
inline constexpr u64 kLoopTimes = 16;         // times that work was launched between two such calls
inline constexpr double kCostlyShare = 0.01;  // of the wall time: below it a pattern is worth a hint, not a warning

// Share of the device's span that it waited for launches: in launch calls, and in the short pauses between them. 0 where that is no
// habit, or the device busy. launch_bound.cpp; from kLaunchBound on that is a finding.
double launch_share(const DeviceTimes& device);
inline constexpr double kLaunchBound = 0.03;  // XProf's gate for "kernel launch bound: moderately"

// PyTorch's allocator refused memory. out_of_memory.cpp
bool was_refused_memory(const ProcessTrace& process);

// By how much what is in use of the device's memory grows all through the loop; 0: it does not, or not known. memory_growth.cpp
u64 growth_of_memory(const ProcessTrace& process, i32 device);

// What the loop would gain if its launching thread never waited for a processor: that time, as its share of the thread's life, but no
// more than all of the host's work costs. 0: not known. busy_processors.cpp
u64 gain_of_processors(const ProcessTrace& process);

// What a loop would gain without PyTorch's anomaly detection; 0: it is off, or that is not known. anomaly_detection.cpp
u64 gain_of_anomaly_detection(const ProcessTrace& process);

// What a loop would gain that compiles nothing: the device's idle time meanwhile. 0: it compiles in fewer than three steps.
// recompilation.cpp
u64 gain_of_compiling(const ProcessTrace& process);

// What findings say of file calls and waits that were counted, each with its evidence. Below this part of what a finding speaks of nothing is
// said. idle_gaps.cpp
inline constexpr double kGoodPart = 0.2;
bool is_good_part(u64 part, u64 of);
void say_files(const FilesUsed& used, u64 of_ns, const std::string& where, Finding& finding);
inline constexpr const char* kFixOfInterpreterLock =
    "let Python's other threads do less while this one launches: their work in processes, or in calls that give the "
    "lock away";
void say_wait(const std::optional<LongWait>& waited, u64 of_ns, Finding& finding);

inline double wall_seconds(const LoadedRun& run) { return static_cast<double>(run.wall_end - run.wall_begin) / 1e9; }
inline double per_second(u64 count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

}  // namespace gputrace
