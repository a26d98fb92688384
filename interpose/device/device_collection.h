// Device time: what the session and the recorded calls tell cupti/, and how cupti/ writes among the definitions.
#pragma once

#include "cupti/loader.h"
#include "interpose/definition/facts.h"
#include "interpose/settings/options.h"

namespace gputrace {

// A new session: what was asked for. Before its gate opens.
void configure_device_collection(const Options& options, Bytes ring_budget);
// The program is about to initialize the driver, or to make a context: hands its argument through. Only the first does
// something.
unsigned initializing_driver(unsigned flags);
void make_ready_for_context();
template <typename Argument>
Argument making_context(Argument argument) {
  make_ready_for_context();
  return argument;
}
// After each call that gives work to a device; the first begins what fetches its records.
void fetch_device_records();
inline __attribute__((always_inline)) void work_given() {
  if (device_awaits_work.load(std::memory_order_relaxed)) [[unlikely]]
    fetch_device_records();
}
// For good.
void end_device_collection();
// The window of the session was moved by the program itself.
void device_window_moved();

void stream_created(const FinishedCall& call, CUstream stream, u64 context);
// A default stream of a context may be used from now on by this thread.
void default_stream_used(const FinishedCall& call, u64 context);
// A call is about to make an executable graph: hands its argument through.
void listen_to_clones();
template <typename Argument>
Argument making_exec(Argument argument) {
  listen_to_clones();
  return argument;
}
void exec_created(CUgraphExec exec);
void exec_node_created(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type);
// After the last of its nodes, also where the call failed.
void exec_told();

}  // namespace gputrace
