// The one clock of a run's events, before any record is read.
#pragma once

#include "analysis/events/events.h"
#include "trace/reader.h"

namespace gputrace {

struct RunClock {
  bool shared = true;  // all processes read one clock
  // First and last record, on the clock of the events: near where LoadedRun begins and ends.
  TimeSpan likely;
};
RunClock clock_of_run(const LoadRequest& request);

// `who` must outlive it.
ExportProcess export_process(u32 number, const TraceReader& reader, const ProcessIdentity& who, const RunClock& clock);

}  // namespace gputrace
