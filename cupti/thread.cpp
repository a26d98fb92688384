// The thread of our own: flushes CUPTI now and then, has what comes back read, records what it cost and what was lost.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <cstring>

#include "base/raw_syscall.h"
#include "cupti/collector.h"
#include "cupti/untraced.h"

namespace gputrace {
namespace {

constexpr Nanos kPeriod = 100'000'000;
constexpr u64 kMargin = 3600ull * 1'000'000'000;  // the wall clock, which CUPTI's is, may be set
constexpr Nanos kReturnPeriod = 1'000'000'000;
constexpr u32 kIdleRounds = 10;  // rounds without any call after which a flush is due anyway
constexpr u64 kStackSize = 1u << 20;

u64 calls_seen() {
  u64 sum = 0;
  for (u32 i = 1; i < producer.slot_count; ++i) sum += producer.slots[i].seen;
  return sum;
}

DeviceCollection present_state() {
  return static_cast<DeviceCollection>(collector.state.load(std::memory_order_acquire));
}

// ------------------------------------------------------------------ what the thread keeps
struct Rounds {
  u64 seen = ~0ull;        // calls of the program at the last flush
  u32 idle = 0;            // rounds since then
  bool brought = true;     // the last flush returned something
  bool refused = false;    // a buffer, since CUPTI last reported drops
  Nanos flushed = 0;       // when
  Nanos cpu_recorded = 0;  // own CPU time that is in the trace already
  Nanos next_cost = 0;     // when to record it again
  Nanos next_return = 0;   // no attempt to come back before this
  u64 clock_begin = 0;     // CUPTI's clock, when it was read first since it last changed
  Nanos clock_began = 0;   // and ours
  double clock_units = 1;  // of CUPTI's clock per ns; 0: not known
  Ticks rate_ticks = 0;    // first reading of both clocks: how fast ticks pass
  Nanos rate_nanos = 0;
};
constinit Rounds rounds{};

void record_losses() {
  if (!collector.any_loss) return;
  collector.any_loss = false;
  for (u32 reason = 0; reason < Collector::kReasons; ++reason) {
    for (u32 kind = 0; kind < Collector::kKinds; ++kind) {
      u64& count = collector.losses[reason][kind];
      if (!count) continue;
      DeviceLoss loss{};
      loss.header.type = static_cast<u16>(RecordType::DeviceLoss);
      loss.header.size = sizeof loss;
      loss.count = count;
      loss.reason = reason;
      loss.kind = kind;
      if (collector.host.define(&loss))
        count = 0;
      else
        collector.any_loss = true;
    }
  }
}

// What CUPTI itself could not keep. Under the lock.
void count_dropped() {
  // Each lost record is counted once: for want of a buffer of ours where one was refused, else for CUPTI's own reasons.
  if (collector.buffers.take_refused()) rounds.refused = true;
  std::size_t dropped = 0;
  if (!checked("cuptiActivityGetNumDroppedRecords",
               collector.api.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped)))
    return;
  if (!dropped) return;
  count_loss(rounds.refused ? DeviceLossReason::NoBuffer : DeviceLossReason::CuptiDropped, dropped, 0);
  rounds.refused = false;
}

u64 device_now() {
  u64 now = 0;
  return collector.api.cuptiGetTimestamp(&now) == kCuptiSuccess ? now : 0;
}

// Own CPU time since the last such record, as a piece of time that ends now. Under the lock.
void record_cost() {
  const Nanos cpu = clock_nanos(CLOCK_THREAD_CPUTIME_ID);
  const u64 now = device_now();
  if (rounds.clock_units == 0) return;  // later
  const u64 spent = static_cast<u64>(static_cast<double>(cpu - rounds.cpu_recorded) * rounds.clock_units);
  if (!now || spent >= now) return;
  DeviceOverhead cost{};
  cost.header.type = static_cast<u16>(RecordType::DeviceOverhead);
  cost.header.size = sizeof cost;
  cost.start = now - spent;
  cost.finish = now;
  cost.kind = static_cast<u32>(OverheadKind::OwnThread);
  cost.thread = own_thread_id();
  write_record(cost.header);
  rounds.cpu_recorded = cpu;
}

// What a client's clock counts is what it has counted since.
void learn_units(u64 device) {
  const Nanos now = monotonic_nanos();
  if (!rounds.clock_begin) rounds.clock_begin = device, rounds.clock_began = now;
  rounds.clock_units = 1;
  if (!collector.clients_clock.load(std::memory_order_acquire)) return;
  const Nanos passed = now - rounds.clock_began;
  rounds.clock_units =
      passed < kPeriod / 2 ? 0 : static_cast<double>(device - rounds.clock_begin) / static_cast<double>(passed);
}

void write_anchor() {
  if (collector.clock_changed.exchange(false, std::memory_order_acq_rel))
    collector.rules.earliest = rounds.clock_begin = 0;
  DeviceClock anchor{};
  if (!take_device_anchor(anchor)) return;
  learn_units(anchor.device);
  if (!collector.rules.earliest) collector.rules.earliest = anchor.device > kMargin ? anchor.device - kMargin : 1;
  collector.rules.latest = anchor.device + kMargin;
  collector.ring.write_stamped(anchor.header);
}

// ------------------------------------------------------------------ one round
bool flush_is_due(Nanos now) {
  if (now - rounds.flushed < kPeriod / 2) return false;  // woken for a full buffer: it is there already
  rounds.flushed = now;
  const u64 seen = calls_seen();
  if (seen == rounds.seen && !rounds.brought && ++rounds.idle < kIdleRounds) return false;
  rounds.seen = seen;
  rounds.idle = 0;
  return true;
}

void flush(u32 flag) {
  if (!checked("cuptiActivityFlushAll", collector.api.cuptiActivityFlushAll(flag))) return;
  count_dropped();
}

// Kernels that were still running when the window closed come later; then CUPTI is left alone.
bool something_is_out() {
  return present_state() == DeviceCollection::Paused && collector.buffers.held() && rounds.idle < 20;
}

void follow_window() {
  const bool open = window_is_open();
  if (open && present_state() == DeviceCollection::Paused) {
    switch_on(", the window is open");
  } else if (!open && present_state() == DeviceCollection::On) {
    pause_collection();
    rounds.idle = 0;
  }
}

void come_back() {
  const Nanos now = monotonic_nanos();
  if (now < rounds.next_return || !client_has_left() || !window_is_open()) return;
  rounds.next_return = now + kReturnPeriod;  // one that did not pass through us may be there
  switch_on(", the other client has left");
}

void round() {
  {
    ControlLock lock;
    if (!lock || !collector_is_ours()) return;
    stop_unheard();
    follow_window();
    if (present_state() == DeviceCollection::Yielded) come_back();
    // What is read below is judged by the clock that it has.
    if (present_state() == DeviceCollection::On && collector.clock_changed.load(std::memory_order_acquire))
      write_anchor();
    if (present_state() == DeviceCollection::On) {
      const Nanos now = monotonic_nanos();
      if (flush_is_due(now)) {
        write_anchor();
        if (present_state() == DeviceCollection::On) flush(0);
      }
      if (present_state() == DeviceCollection::On && now >= rounds.next_cost) {
        record_cost();
        rounds.next_cost = now + 1'000'000'000;
      }
    } else if (something_is_out()) {
      ++rounds.idle;
      flush(0);
    }
  }
  rounds.brought = read_buffers();
  record_losses();
}

void finish() {
  ControlLock lock;
  if (lock && collector_is_ours()) {
    const DeviceCollection state = present_state();
    const bool on = state == DeviceCollection::On;
    if (on) write_anchor();
    if (on || (state == DeviceCollection::Paused && collector.buffers.held())) {
      flush(0);
      read_buffers();
      // What is not complete now never will be: it comes without times, and is counted.
      collector.forced = true;
      if (collector.state.load(std::memory_order_acquire) == static_cast<u32>(state)) flush(kFlushForced);
    }
    collector.wants_buffers.store(false, std::memory_order_release);
    read_buffers();
    if (present_state() == DeviceCollection::On) record_cost();
    if (present_state() == DeviceCollection::On) write_anchor();
    record_losses();
    if (present_state() == DeviceCollection::On || present_state() == DeviceCollection::Paused)
      record_state(DeviceCollection::Ended, "everything was flushed when the process ended");
  }
  collector.ring.leave();
}

// ------------------------------------------------------------------ when the next round is
Nanos nanos_until(Ticks boundary) {
  const Ticks now = record_ticks();
  if (boundary <= now || boundary == ~0ull) return kPeriod;
  const Nanos elapsed = monotonic_nanos() - rounds.rate_nanos;
  if (elapsed < 1'000'000) return 1'000'000;
  const double ticks_per_nano = static_cast<double>(now - rounds.rate_ticks) / static_cast<double>(elapsed);
  const double nanos = static_cast<double>(boundary - now) / ticks_per_nano;
  if (nanos > static_cast<double>(kPeriod)) return kPeriod;
  return nanos < 100'000.0 ? 100'000 : static_cast<Nanos>(nanos);
}

Nanos next_pause() {
  const SegmentControl& control = *producer.control;
  const Nanos begin = nanos_until(control.window_begin.load(std::memory_order_relaxed));
  const Nanos end = nanos_until(control.window_end.load(std::memory_order_relaxed));
  return begin < end ? begin : end;
}

void wait(u32 seen_wakes) {
  const Nanos pause = next_pause();
  const timespec timeout{pause / 1'000'000'000, pause % 1'000'000'000};
  raw_syscall(SYS_futex, raw_pointer(&collector.wake), FUTEX_WAIT_PRIVATE, seen_wakes, raw_pointer(&timeout));
}

void* run_thread(void*) {
  thread_state.busy = kUntraced;
  collector.thread_id.store(static_cast<i32>(own_thread_id()), std::memory_order_relaxed);
  raw_syscall(SYS_prctl, PR_SET_NAME, raw_pointer("gputrace-cupti"));
  collector.ring.join(collector.options.generation);
  rounds = Rounds{};
  rounds.rate_ticks = record_ticks();
  rounds.rate_nanos = monotonic_nanos();
  for (;;) {
    const u32 wakes = collector.wake.load(std::memory_order_acquire);
    if (collector.stopping.load(std::memory_order_acquire)) {
      finish();
      break;
    }
    round();
    if (present_state() == DeviceCollection::Failed) {
      collector.ring.leave();
      break;
    }
    wait(wakes);
  }
  collector.thread.store(FetchThread::Ended, std::memory_order_release);
  collector.stopped.store(1, std::memory_order_release);
  raw_syscall(SYS_futex, raw_pointer(&collector.stopped), FUTEX_WAKE_PRIVATE, 1);
  return nullptr;
}

// Signals are for the program's threads: all blocked, but for the two that libc uses among its own (32, 33).
bool create_thread() {
  const auto find = collector.host.libc_function;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  const auto create = reinterpret_cast<Create>(collector.host.thread_create);
  const auto init = reinterpret_cast<int (*)(pthread_attr_t*)>(find("pthread_attr_init"));
  const auto stack = reinterpret_cast<int (*)(pthread_attr_t*, std::size_t)>(find("pthread_attr_setstacksize"));
  const auto detached = reinterpret_cast<int (*)(pthread_attr_t*, int)>(find("pthread_attr_setdetachstate"));
  if (!create || !init || !stack || !detached) return false;
  pthread_attr_t attributes;
  if (init(&attributes) != 0) return false;
  stack(&attributes, kStackSize);
  detached(&attributes, PTHREAD_CREATE_DETACHED);
  const u64 all = ~(3ull << 31);
  u64 before = 0;
  raw_syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, raw_pointer(&all), raw_pointer(&before), sizeof all);
  pthread_t thread;
  const int error = create(&thread, &attributes, run_thread, nullptr);
  raw_syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, raw_pointer(&before), 0, sizeof before);
  return error == 0;
}

}  // namespace

void write_record(RecordHeader& record) {
  if (!collector.ring.write(record)) count_loss(DeviceLossReason::RingFull, 1, 0);
}

void count_loss(DeviceLossReason reason, u64 count, u32 kind) {
  collector.losses[static_cast<u32>(reason)][kind < Collector::kKinds ? kind : 0] += count;
  collector.any_loss = true;
}

void wake_thread() {
  collector.wake.fetch_add(1, std::memory_order_release);
  raw_syscall(SYS_futex, raw_pointer(&collector.wake), FUTEX_WAKE_PRIVATE, 1);
}

bool start_thread() {
  FetchThread due = FetchThread::Due;
  if (!collector.thread.compare_exchange_strong(due, FetchThread::Runs, std::memory_order_acq_rel)) return true;
  device_awaits_work.store(false, std::memory_order_relaxed);
  const bool begun = create_thread();
  if (!begun) collector.thread.store(FetchThread::Ended, std::memory_order_release);
  return begun;
}

bool fetches() {
  const FetchThread thread = collector.thread.load(std::memory_order_acquire);
  return thread == FetchThread::Due || thread == FetchThread::Runs;
}

}  // namespace gputrace
