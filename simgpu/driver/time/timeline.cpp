#include "simgpu/driver/time/timeline.h"

#include <algorithm>

#include "simgpu/driver/life/truth.h"
#include "simgpu/driver/memory/pool.h"
#include "simgpu/driver/time/event_share.h"
#include "simgpu/driver/time/worker.h"

namespace simgpu {

namespace {

// Everything that an operation of `stream` must come after and that still waits in other queues. References are taken.
std::vector<Place> queued_before(Stream& stream) {
  std::vector<Place> places;
  const auto add = [&](Stream* other) {
    if (!other->has_queue()) return;
    retain(other);
    places.push_back({other, other->submitted.load(std::memory_order_acquire)});
  };
  Context& context = *stream.context;
  if (stream.waits_for_legacy()) {
    if (Stream* legacy = context.legacy.load(std::memory_order_acquire)) add(legacy);
  } else if (stream.kind == Stream::Kind::legacy) {
    std::lock_guard lock(context.mutex);
    for (Stream* other : context.streams) {
      if (other->waits_for_legacy()) add(other);
    }
  }
  return places;
}

void truth_event(CallStamp* stamp, const Event& event, const Stream& stream, Nanos at) {
  if (stamp == nullptr) return;
  stamp->add(TruthFields("event").add("event", handle_of(&event)).add("stream", stream.id).add("at_ns", at));
}

void forget_place(Event& event) {
  if (event.place.stream != nullptr) release(event.place.stream);
  event.place = {};
}

// The event's time is known, if no later record has taken its place.
void settle_event(Event& event, uint64_t generation, Nanos at) {
  std::lock_guard lock(event.mutex);
  if (event.generation != generation) return;
  set_event_time(event, at);
  forget_place(event);
}

}  // namespace

bool must_defer(Stream& stream) {
  if (stream.has_queue()) return true;
  Context& context = *stream.context;
  if (stream.waits_for_legacy()) {
    const Stream* legacy = context.legacy.load(std::memory_order_acquire);
    return legacy != nullptr && legacy->has_queue();
  }
  if (stream.kind != Stream::Kind::legacy) return false;
  std::lock_guard lock(context.mutex);
  return std::any_of(context.streams.begin(), context.streams.end(),
                     [](const Stream* other) { return other->waits_for_legacy() && other->has_queue(); });
}

Nanos earliest_start(Stream& stream, Nanos submitted) {
  Nanos ready = std::max(submitted, stream.end.load(std::memory_order_acquire));
  Context& context = *stream.context;
  if (stream.waits_for_legacy()) {
    const Stream* legacy = context.legacy.load(std::memory_order_acquire);
    return legacy == nullptr ? ready : std::max(ready, legacy->end.load(std::memory_order_acquire));
  }
  if (stream.kind != Stream::Kind::legacy || context.blocking_streams.load(std::memory_order_acquire) == 0)
    return ready;
  std::lock_guard lock(context.mutex);
  for (const Stream* other : context.streams) {
    if (other->waits_for_legacy()) ready = std::max(ready, other->end.load(std::memory_order_acquire));
  }
  return ready;
}

uint64_t defer(Stream& stream, Work work) {
  std::vector<Place> before = queued_before(stream);
  work.after.insert(work.after.end(), before.begin(), before.end());
  stream.context->deferred.fetch_add(1, std::memory_order_acq_rel);
  uint64_t ticket = 0;
  {
    std::lock_guard lock(stream.mutex);
    stream.queue.push_back(std::move(work));
    ticket = stream.submitted.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  worker_adopt(stream);
  return ticket;
}

void on_worker(Call& call, Stream& stream, std::function<Nanos(Nanos ready)> run) {
  if (call.stamp()) call.stamp()->promise();
  const auto guarded = [run = std::move(run)](Nanos ready) {
    thread_state.in_host_function = true;
    const Nanos end = run(ready);
    thread_state.in_host_function = false;
    return end;
  };
  defer(stream, Work{call.begin() + knobs().launch_latency, {}, {}, guarded, true});
}

void wait_for_condition(Call& call, Stream& stream, std::function<bool(Nanos ready)> condition) {
  defer(
      stream,
      Work{call.begin() + knobs().launch_latency, {}, std::move(condition), [](Nanos ready) { return ready; }, false});
}

void event_record(Call& call, Stream& stream, Event& event) {
  const Nanos submitted = call.begin() + knobs().launch_latency;
  if (deferring(stream)) {
    retain(&event);
    retain(&stream);
    std::lock_guard lock(event.mutex);
    const uint64_t generation = ++event.generation;
    forget_place(event);
    set_event_pending(event);
    if (call.stamp()) call.stamp()->promise();
    const auto settle = [&event, &stream, generation, stamp = call.stamp()](Nanos ready) {
      settle_event(event, generation, ready);
      truth_event(stamp.get(), event, stream, ready);
      release(&event);
      return ready;
    };
    event.place = {&stream, defer(stream, Work{submitted, {}, {}, settle, false})};
    return;
  }
  Nanos at = 0;
  {
    std::lock_guard lock(stream.mutex);
    at = earliest_start(stream, submitted);
    stream.last_kernel_start = 0;
    stream.end.store(at, std::memory_order_release);
  }
  std::lock_guard lock(event.mutex);
  ++event.generation;
  forget_place(event);
  set_event_time(event, at);
  truth_event(call.stamp().get(), event, stream, at);
}

// Waits for host functions that are queued (their end is not known before); device work is not waited for.
void event_record_context(Call& call, Context& context, Event& event) {
  worker_wait_context(context);
  Nanos at = call.begin();
  {
    std::lock_guard lock(context.mutex);
    for (const Stream* stream : context.streams) at = std::max(at, stream->end.load());
  }
  std::lock_guard lock(event.mutex);
  ++event.generation;
  forget_place(event);
  set_event_time(event, at);
  if (!call.stamp()) return;
  call.truth(TruthFields("event").add("event", handle_of(&event)).null("stream").add("at_ns", at));
}

void event_wait(Call& call, Stream& stream, Event& event) {
  wait_for_other_process(event);
  std::unique_lock lock(event.mutex);
  if (!event.recorded) return;
  if (!event.pending) {
    const Nanos at = event.at;
    lock.unlock();
    in_order(call, stream, [at, &stream](Nanos ready) {
      stream.last_kernel_start = 0;
      return std::max(ready, at);
    });
    return;
  }
  const Place place = event.place;
  const uint64_t generation = event.generation;
  retain(place.stream);
  retain(&event);
  lock.unlock();
  // The place's stream is in `after`, whose reference outlives the run.
  const auto run = [&event, generation, other = place.stream](Nanos ready) {
    Nanos at = other->end.load();
    {
      std::lock_guard own(event.mutex);
      if (event.generation == generation && !event.pending) at = event.at;
    }
    release(&event);
    return std::max(ready, at);
  };
  defer(stream, Work{call.begin() + knobs().launch_latency, {place}, {}, run, false});
}

CUresult event_query(Event& event) {
  std::lock_guard lock(event.mutex);
  adopt_event_time(event);
  if (!event.recorded) return CUDA_SUCCESS;
  return event.pending || event.at > now_ns() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

void event_wait_host(Event& event) {
  for (;;) {
    wait_for_other_process(event);
    std::unique_lock lock(event.mutex);
    if (!event.recorded) return;
    if (!event.pending) {
      const Nanos at = event.at;
      lock.unlock();
      wait_until(at);
      pools_synchronized();
      return;
    }
    const Place place = event.place;
    retain(place.stream);
    lock.unlock();
    worker_wait(place);
    release(place.stream);
  }
}

bool stream_idle(Stream& stream) {
  if (deferring(stream)) return false;
  return (stream.kind == Stream::Kind::legacy ? earliest_start(stream, 0) : stream.end.load()) <= now_ns();
}

void stream_wait_host(Stream& stream) {
  if (deferring(stream)) {
    std::vector<Place> places = queued_before(stream);
    for (const Place& place : places) worker_wait(place);
    for (const Place& place : places) release(place.stream);
    worker_wait({&stream, stream.submitted.load(std::memory_order_acquire)});
  }
  wait_until(stream.kind == Stream::Kind::legacy ? earliest_start(stream, 0) : stream.end.load());
  pools_synchronized();
}

void context_wait_host(Context& context) {
  worker_wait_context(context);
  Nanos until = 0;
  {
    std::lock_guard lock(context.mutex);
    until = context.orphans_end;
    for (const Stream* stream : context.streams) until = std::max(until, stream->end.load());
  }
  wait_until(until);
  pools_synchronized();
}

Span occupy_engine(Device& device, int engine, Nanos ready, Nanos duration) {
  std::lock_guard lock(device.engine_mutex);
  std::vector<Span>& busy = device.engine_busy[static_cast<size_t>(engine)];
  const Nanos now = now_ns();
  busy.erase(std::remove_if(busy.begin(), busy.end(), [&](const Span& span) { return span.end < now; }), busy.end());
  // The first gap that is long enough.
  Nanos start = ready;
  auto at = busy.begin();
  for (; at != busy.end() && start + duration > at->start; ++at) start = std::max(start, at->end);
  const Span span{start, start + duration};
  busy.insert(at, span);
  return span;
}

}  // namespace simgpu
