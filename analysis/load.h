// From trace files to what reports read: opens each, folds its records, puts the processes on one time line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/pass/process_builder.h"
#include "analysis/read/allowance.h"
#include "analysis/read/trace_files.h"
#include "analysis/timeline/witness.h"
#include "base/result.h"

namespace gputrace {

struct LoadRequest {
  std::vector<std::string> files;
  std::optional<Nanos> from, to;  // after the first record of all processes
  std::optional<std::string> rank;
  bool last = false;  // only the newest run among the files
  // Only what happened in these steps (from 1, both included) of the processes that have them. Not with `from` and `to`.
  std::optional<std::pair<u64, u64>> steps;
  std::string step_pattern;  // names of NVTX ranges that are steps: a regular expression; empty: none is given
};

// Sees the processes of a run while they are loaded, several at a time. Whoever it is outlives the load.
class RunWitness {
 public:
  virtual ~RunWitness() = default;
  // Who sees this file, its place in the request's; nullptr: nobody need. On any thread; the reader lives until loaded().
  virtual Witness* opened(std::size_t file, const TraceReader& reader, TimeWindow window) = 0;
  // All of it was seen. On the thread of opened().
  virtual void loaded(std::size_t file, const ProcessTrace& process) = 0;
};

// The error: none of the files could be read at all (then it says why of the first), none is left by `rank`, or none has the steps.
// Throws std::regex_error. `witness`: sees those files too that the run then leaves out; what its witnesses do not want, the run has not.
Result<LoadedRun, InputError> load_run(const LoadRequest& request, RunWitness* witness = nullptr);

// What is to be known of a whole run before steps of it can be loaded: who keeps it saves a reading of the traces.
struct RunSteps {
  struct Process {
    std::string file;
    StepFacts steps;
  };
  std::vector<Process> processes;
  std::string why_none;         // where none of them has any
  std::optional<Nanos> origin;  // as LoadedRun has it
};
RunSteps steps_of(const LoadedRun& whole);
// The same as load_run() of a request for steps, where they are known: the traces are read once.
Result<LoadedRun, InputError> load_steps(const LoadRequest& request, const RunSteps& whole,
                                         RunWitness* witness = nullptr);

// First and last instant of a trace's records on its host's clock, as its chunks tell; nothing where it has none.
std::optional<TimeSpan> span_of_records(const TraceReader& reader);

// Of all files that are there.
u64 bytes_of(const std::vector<std::string>& files);

// One line on why a file cannot be opened, with its path.
std::string describe(const std::string& path, const OpenError& error);

// The window of the records that a request asks for by times, on the hosts' clock. The error: it begins after the last of them.
Result<TimeWindow, InputError> window_of(const LoadRequest& request);
// The window of the steps that it asks for. The error: none of the processes has such steps.
Result<TimeWindow, InputError> window_of_steps(const RunSteps& whole, std::pair<u64, u64> steps);

// A loop is read once more, start-up left out: of a run of more records than these, start-up included, its first steps.
inline constexpr u64 kMostReadTwice = 4'000'000;

// The fold of one open trace, with its steps and, where it is read as a whole and `read_twice` is not 0, its loop, within the first so
// many records. A note says why it has none, or not all. Also the door for tests, and, with a witness, for exports (then with what it wants).
// `allowance`: what this one and others may cost together, the loop apart; nullptr: one of its own.
ProcessTrace load_process(const TraceReader& reader, TimeWindow window, const std::string& step_pattern = {},
                          Witness* witness = nullptr, Allowance* allowance = nullptr, u64 read_twice = kMostReadTwice);

}  // namespace gputrace
