// The one thread that runs queued work, and how others wait for it. Started when the first work is queued.
#pragma once

#include "simgpu/driver/life/state.h"

namespace simgpu {

void worker_adopt(Stream& stream);           // it has work now
void worker_wait(const Place& place);        // returns when the stream has processed the ticket
void worker_wait_context(Context& context);  // returns when nothing of the context is queued

}  // namespace simgpu
