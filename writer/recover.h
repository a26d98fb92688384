// What a ring in a file still holds after program and sidecar have died together: appended to the trace that the sidecar had begun, or,
// where it had not come that far, written as a trace of its own. See cli/recover_verb.cpp.
#pragma once

#include <string>

#include "base/types.h"
#include "writer/host.h"

namespace gputrace {

struct Recovered {
  std::string error;          // empty: done
  bool in_use = false;        // the program or its sidecar is still alive: nothing was touched
  std::string trace;          // path of the trace
  u64 records = 0;            // that were not in it before
  bool was_complete = false;  // the trace had its end already
};

// `trace`: path of the trace that was begun; empty: it is where the ring says. Where there is none one is made where GPUTRACE_OUTPUT says. The ring file is
// removed once all of it is in the trace.
Recovered recover_ring(const std::string& ring, const std::string& trace, const Environment& environment);

}  // namespace gputrace
