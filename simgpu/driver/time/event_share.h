// Events that several processes know (CU_EVENT_INTERPROCESS): their time lies in a memory file of the process that exported them, which the
// others map. Device time is one clock for all processes, so a time is all that there is to share.
#pragma once

#include "simgpu/driver/life/state.h"

namespace simgpu {

// The place is what a handle of cuIpcGetEventHandle holds.
CUresult export_event(Event& event, SharedPlace* out);
CUresult import_event(const SharedPlace& place, Event& event);

// Under the event's mutex. The time that the event has from now on; and that it will have one, which is not known yet.
void set_event_time(Event& event, Nanos at);
void set_event_pending(Event& event);
// Under the event's mutex, before its state is judged: takes over what another process has recorded since.
void adopt_event_time(Event& event);
// Not under it: returns when no other process has the event behind work whose end is not known yet.
void wait_for_other_process(Event& event);

}  // namespace simgpu
