// Device time: what the session and the recorded calls tell cupti/, and how cupti/ writes among the definitions.
#pragma once

#include "interpose/definition/facts.h"
#include "interpose/settings/options.h"

namespace gputrace {

// A new session: what was asked for. Before its gate opens.
void configure_device_collection(const Options& options, Bytes ring_budget);
// The program initializes the driver: before the real call and after it. Only the first of each does something.
unsigned initializing_driver(unsigned flags);
void driver_ready();
// For good.
void end_device_collection();
// The window of the session was moved by the program itself.
void device_window_moved();

void stream_created(const FinishedCall& call, CUstream stream, u64 context);
// A default stream of a context may be used from now on by this thread.
void default_stream_used(const FinishedCall& call, u64 context);
void exec_created(CUgraphExec exec);
void exec_node_created(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type);

}  // namespace gputrace
