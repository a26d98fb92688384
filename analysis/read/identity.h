// What the information chunks of a trace say of the process: who it was, how it ended, what was and was not collected.
#pragma once

#include "analysis/facts/facts.h"
#include "trace/reader.h"

namespace gputrace {

void read_identity(const TraceReader& reader, ProcessTrace& process);
void read_counters(const TraceReader& reader, ProcessTrace& process);
void read_damage(const TraceReader& reader, ProcessTrace& process);

// A word for an end reason ("exited", "killed by signal 9").
std::string end_reason(const TraceReader& reader);

}  // namespace gputrace
