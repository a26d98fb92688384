// What idle-gaps says of the host's time in a device's gaps. Each adds to the finding's text, evidence and fix.
#pragma once

#include "analysis/findings/rules.h"
#include "analysis/gains/gains.h"

namespace gputrace {

// All of it but the two below. Returns how much of `host_ns` the program waits for what comes from outside: no change of its own brings that back.
u64 say_host_time(const ProcessTrace& process, const DeviceTimes& device, const IdleSite& site, u64 host_ns,
                  Finding& finding);

// Most of it lies before the first call of a thread, of many: said, and true.
bool say_new_threads(const DeviceTimes& device, u64 host_ns, Finding& finding);

// A program that compiles once and runs for seconds: what it compiles is most of its time, and needed. Returns how long that took; 0: not most of it.
u64 say_compiling(const ProcessTrace& process, u64 host_ns, Finding& finding);

}  // namespace gputrace
