#include "interpose/session/window.h"

#include <atomic>

#include "base/raw_syscall.h"
#include "interpose/device/device_collection.h"
#include "interpose/nvtx/nvtx.h"
#include "ringbuf/producer.h"

namespace gputrace {
namespace {

constexpr u64 kNever = ~0ull;

// Constant while a session lives.
constinit CaptureMode capture = CaptureMode::All;
constinit Nanos duration = 0;
constinit u32 first_step = 0, last_step = 0;
constinit double ticks_per_nano = 0;

constinit std::atomic<u32> steps_ended{0};  // in this session

// Ticks are the sidecar's to calibrate; only those who ask for a delay or a duration wait 2 ms for a rate of our own.
double measure_tick_rate(ClockKind clock) {
  if (clock != ClockKind::Tsc) return 1.0;
  const Anchor from = take_anchor(clock);
  const timespec pause{0, 2'000'000};
  raw_syscall(SYS_nanosleep, raw_pointer(&pause), 0);
  const Anchor to = take_anchor(clock);
  const double nanos = static_cast<double>(to.monotonic_ns - from.monotonic_ns);
  return nanos > 0 ? static_cast<double>(to.ticks - from.ticks) / nanos : 0;
}

Ticks ticks_after(Ticks from, Nanos nanos) {
  return from + static_cast<Ticks>(static_cast<double>(nanos) * ticks_per_nano);
}

}  // namespace

void open_window(const Options& options, bool forked) {
  capture = options.capture;
  duration = options.duration_ns;
  first_step = options.first_step, last_step = options.last_step;
  steps_ended.store(0, std::memory_order_relaxed);
  SegmentControl& control = *producer.control;
  const Ticks now = producer.session_begin;
  if (options.delay_ns || options.duration_ns) ticks_per_nano = measure_tick_rate(producer.clock);
  Ticks begin = options.delay_ns ? ticks_after(now, options.delay_ns) : 0;
  Ticks end = kNever;
  if (options.duration_ns) end = ticks_after(options.delay_ns ? begin : now, options.duration_ns);
  const bool range_is_open = nvtx_session_begins(options, forked);
  const bool begins_at_once = range_is_open || (capture == CaptureMode::Steps && first_step == 1);
  if (capture != CaptureMode::All && !begins_at_once) begin = kNever;
  control.window_end.store(end, std::memory_order_relaxed);
  control.window_begin.store(begin, std::memory_order_relaxed);
  const bool waiting = begin != 0;
  control.state.store(static_cast<u32>(waiting ? SessionState::Waiting : SessionState::Recording),
                      std::memory_order_release);
}

void set_profiler_range(bool begin, Ticks now) {
  if (capture == CaptureMode::ProfilerApi) set_capture_range(begin, now);
}

void step_ended(Ticks now) {
  if (capture != CaptureMode::Steps) return;
  const u32 ended = steps_ended.fetch_add(1, std::memory_order_relaxed) + 1;
  if (ended + 1 == first_step) set_capture_range(true, now);
  if (ended == last_step) set_capture_range(false, now);
}

void steps_are_unknown(Ticks now) {
  const bool waits = capture == CaptureMode::Steps && steps_ended.load(std::memory_order_relaxed) + 1 < first_step;
  if (waits) set_capture_range(true, now);
}

void set_capture_range(bool begin, Ticks now) {
  if (gate_generation() < kFirstGeneration) return;
  SegmentControl& control = *producer.control;
  if (!begin) {
    control.window_end.store(now, std::memory_order_relaxed);
    control.state.store(static_cast<u32>(SessionState::Ended), std::memory_order_release);
    device_window_moved();
    return;
  }
  // The begin first: what began before it is not let in by the new end.
  control.window_begin.store(now, std::memory_order_relaxed);
  control.window_end.store(duration ? ticks_after(now, duration) : kNever, std::memory_order_release);
  control.state.store(static_cast<u32>(SessionState::Recording), std::memory_order_release);
  device_window_moved();
}

}  // namespace gputrace
