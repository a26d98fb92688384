// Virtual time. Every stream has an end; an operation starts at the latest of
//   call begin + SIMGPU_LAUNCH_LATENCY · the end of its stream · what the legacy-stream rules add · its engine's end
// and nothing but the caller's thread is needed for that: data moves, and the end is known, when the call is made.
//
// Host functions and waits for values end when the host says so. They go to the stream's queue, and so does all that
// follows in that stream, or in a stream that waits for it, until the queue has drained; one worker thread, started at
// the first such work, runs queues in order.
#pragma once

#include <utility>

#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

// True if an operation for `stream` must queue behind others now.
bool must_defer(Stream& stream);
inline bool deferring(Stream& stream) {
  return stream.context->deferred.load(std::memory_order_acquire) != 0 && must_defer(stream);
}
// Earliest start in stream order for an operation submitted at `submitted`: stream end and legacy rules.
Nanos earliest_start(Stream& stream, Nanos submitted);
uint64_t defer(Stream& stream, Work work);  // its ticket in that stream

// Runs an operation now, in stream order; for streams that do not defer. Returns its end.
template <class Run>
Nanos at_once(Stream& stream, Nanos submitted, Run&& run) {
  std::lock_guard lock(stream.mutex);
  const Nanos end = run(earliest_start(stream, submitted));
  stream.end.store(end, std::memory_order_release);
  return end;
}

// Gives `run` its place in stream order. Nanos run(Nanos ready) → end of the operation; it is called once, now (on this
// thread, under the stream's lock) or later (on the worker): it must own what it uses.
template <class Run>
void in_order(Call& call, Stream& stream, Run&& run) {
  const Nanos submitted = call.begin() + knobs().launch_latency;
  if (deferring(stream)) {
    if (call.stamp()) call.stamp()->promise();
    defer(stream, Work{submitted, {}, {}, std::forward<Run>(run), false});
    return;
  }
  at_once(stream, submitted, run);
}

// The same on the worker thread, when the clock has reached `ready`: for work that calls the program's code. The
// program's code is called with ThreadState::in_host_function set.
void on_worker(Call& call, Stream& stream, std::function<Nanos(Nanos ready)> run);

// The stream goes on only after `condition` is true; polled by the worker.
void wait_for_condition(Call& call, Stream& stream, std::function<bool(Nanos ready)> condition);

// Events. All return at once but event_wait_host.
void event_record(Call& call, Stream& stream, Event& event);
void event_record_context(Call& call, Context& context, Event& event);  // after all of the context's work
void event_wait(Call& call, Stream& stream, Event& event);
CUresult event_query(Event& event);  // CUDA_SUCCESS or CUDA_ERROR_NOT_READY
void event_wait_host(Event& event);  // returns when the event's time has come

bool stream_idle(Stream& stream);       // cuStreamQuery
void stream_wait_host(Stream& stream);  // everything submitted so far has ended (for the legacy stream: also all
                                        // that it would wait for)
void context_wait_host(Context& context);

// The next free time of a copy engine (0 to the device, 1 from it) at or after `ready`; occupies it for `duration`.
Span occupy_engine(Device& device, int engine, Nanos ready, Nanos duration);

}  // namespace simgpu
