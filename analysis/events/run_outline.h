// What is to be known of a whole run before the events of any of its processes are: the one clock of all, and their ranks.
#pragma once

#include <string>
#include <vector>

#include "analysis/events/events.h"
#include "trace/reader.h"

namespace gputrace {

struct RunClock {
  bool shared = true;  // all processes read one clock
  // First and last record, on the clock of the events: near where LoadedRun begins and ends.
  TimeSpan likely;
};
struct RunOutline {
  RunClock clock;
  // By file: by its launcher, else by the communicators that the run's processes made, which their definitions are read for where there are several. Empty: it
  // has none.
  std::vector<std::string> ranks;
};
RunOutline outline_of_run(const LoadRequest& request);

// `who` must outlive it.
ExportProcess export_process(u32 number, const TraceReader& reader, const ProcessIdentity& who, const RunClock& clock);

}  // namespace gputrace
