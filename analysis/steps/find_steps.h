// Finds the steps of a process: by what the program or its framework marks, else by the period of what it gives to the device;
// says which are no usual ones, and divides their time.
//
//   order: a pattern that the user gave · ProfilerStep# · PyTorch's optimizer · NVTX ranges named like steps · the profiler
//   switched on and off · PyTorch's DataLoader · the period
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// `pattern`: regular expression for names of NVTX ranges; empty: none was given. Fills `process.steps`, and gives back what it
// was made of. Throws std::regex_error.
void find_steps(ProcessTrace& process, const std::string& pattern = {});

// Those that lie in [from, to), with the numbers that they have; only of `numbers`, both of them too.
StepFacts steps_between(const StepFacts& facts, Nanos from, Nanos to, std::pair<u64, u64> numbers = {0, ~u64{0}});
// Some steps that follow each other. The host gave their work to the device in [called_from, called_to): the same time, but where
// it runs so far ahead that steps are told by the device's times.
struct StepSpan {
  Nanos begin = 0, end = 0, called_from = 0, called_to = 0;
};
StepSpan span_of(const StepFacts& facts, const Step& first, const Step& last);
// From the first step that counts to the last.
std::optional<StepSpan> loop_of(const StepFacts& facts);

// Of the devices' time, each from its first activity to its last, the share outside of the steps that count; 1 where there are none.
double share_outside(const ProcessTrace& process);
inline constexpr double kMostOutside = 0.05;  // with less of it, what holds for the run holds for its steps

// What the steps that count come to.
struct StepStatistics {
  u64 steps = 0, counted = 0, divided = 0;
  std::array<u64, kRunPhases> beside{};  // by phase: those that do not count
  u64 mean_ns = 0, median_ns = 0, p99_ns = 0, min_ns = 0, max_ns = 0;
  StepParts mean_parts{};           // of those that count and are divided
  u64 mean_host_busy_ns = 0;        // of those that count and of which it is known
  u64 loop_ns = 0, between_ns = 0;  // from the first that counts to the last; of that what lies in no step
};
StepStatistics statistics_of(const StepFacts& facts);

// The process whose steps stand for the run: of those with steps the one that launched most; nullptr: none has any.
const ProcessTrace* main_steps(const LoadedRun& run);
// Why none was found, in a sentence without a full stop.
std::string why_no_steps(const LoadedRun& run);

const char* step_source_name(StepSource source);
const char* step_category_name(StepCategory category);
const char* run_phase_name(RunPhase phase);

}  // namespace gputrace
