// The events of a run as the page's timeline takes them: a description in JSON, and the numbers packed (packed.h).
//   · A track is a thread's calls, operations and ranges, or a device's stream. Its columns: begin (each from the one before, in ns), length,
//     name; of threads also result and source line; of streams also bytes and the launching call (its place among the process's host
//     events + 1, from the one before; 0: none).
#pragma once

#include <string>

#include "analysis/page/picked_events.h"

namespace gputrace {

struct EventBlock {
  std::string description;  // JSON
  std::string columns;      // base64
};
EventBlock pack_events(const EventTables& tables, const PickedEvents& picked);

}  // namespace gputrace
