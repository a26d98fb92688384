// libgputrace-host.so, if it was preloaded, told where to count. Cold.
#pragma once

#include "base/types.h"
#include "interpose/settings/info_text.h"
#include "interpose/settings/options.h"

namespace gputrace {

// Bytes of a segment of that budget for the table of host calls; 0: nobody would write into it, and `info` says why where it was asked
// for.
Bytes wanted_host_table(const Options& options, Bytes budget, InfoText& info);
// The session begins: what is called from here on is counted in the segment's table, if it has one.
void connect_host(const Options& options);

}  // namespace gputrace
