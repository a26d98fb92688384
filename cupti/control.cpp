// On, off, aside: every call that changes CUPTI's state.
#include <sys/mman.h>

#include <cstring>

#include "base/raw_syscall.h"
#include "cupti/collector.h"
#include "cupti/untraced.h"
#include "trace/key_calls.h"

namespace gputrace {

constinit Collector collector{};
constinit Alive collector_alive{};

namespace {

struct WantedKind {
  u32 kind;
  bool required;
};
constexpr WantedKind kWanted[] = {{kKindConcurrentKernel, true}, {kKindMemcpy, true},      {kKindMemset, true},
                                  {kKindMemcpy2, false},         {kKindOverhead, false},   {kKindJit, false},
                                  {kKindGraphTrace, false},      {kKindEnvironment, false}};

const char* result_text(CuptiResult result) {
  const char* text = nullptr;
  if (collector.api.cuptiGetResultString && collector.api.cuptiGetResultString(result, &text) == kCuptiSuccess && text)
    return text;
  return "no text";
}

constexpr u32 kFirstNewCallback = 700;  // from here on not every CUPTI 12 has the call in its table

// The driver's calls that put work on a device, one by one: the whole kind would record every call of the program, and waits have no
// operation to be joined to.
bool enable_keys(bool enable) {
  const auto set = collector.api.cuptiActivityEnableDriverApi;
  if (!set) return false;
  for (const KeyCall& call : kKeyCalls) {
    if (call.work == KeyWork::Nothing) continue;
    if (set(call.callback, enable) != kCuptiSuccess && enable && call.callback < kFirstNewCallback) return false;
  }
  return true;
}

bool enable_kinds() {
  for (const WantedKind& wanted : kWanted) {
    if (wanted.kind == kKindGraphTrace && collector.options.node_graphs) continue;
    if (wanted.kind == kKindEnvironment && !collector.options.environment) continue;
    const CuptiResult result = collector.api.cuptiActivityEnable(wanted.kind);
    if (result == kCuptiSuccess) {
      collector.kinds |= 1ull << wanted.kind;
    } else if (wanted.required) {
      fail_collection("cuptiActivityEnable", result);
      return false;
    }
  }
  return true;
}

void set_zeroed_buffers(u8 zeroed) {
  std::size_t size = sizeof zeroed;
  if (collector.api.cuptiActivitySetAttribute)
    collector.api.cuptiActivitySetAttribute(kAttributeZeroedBuffers, &size, &zeroed);
}

void set_thread_ids(u32 type) {
  if (collector.api.cuptiSetThreadIdType) collector.api.cuptiSetThreadIdType(type);
}

void change_settings() {
  CuptiSettings& settings = collector.settings;
  if (settings.changed) return;
  settings = {true, 0, 0};  // CUPTI's defaults, where it cannot be asked
  if (collector.api.cuptiGetThreadIdType) collector.api.cuptiGetThreadIdType(&settings.thread_ids);
  std::size_t size = sizeof settings.zeroed_buffers;
  if (collector.api.cuptiActivityGetAttribute)
    collector.api.cuptiActivityGetAttribute(kAttributeZeroedBuffers, &size, &settings.zeroed_buffers);
  set_thread_ids(kThreadIdSystem);
  set_zeroed_buffers(1);  // they come back zeroed from our own thread, so CUPTI need not do it on the program's
}

void restore_settings() {
  if (!collector.settings.changed) return;
  collector.settings.changed = false;
  set_thread_ids(collector.settings.thread_ids);
  set_zeroed_buffers(collector.settings.zeroed_buffers);
}

bool register_callbacks() {
  if (collector.registered.load(std::memory_order_acquire)) return true;
  if (!checked("cuptiActivityRegisterCallbacks",
               collector.api.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed)))
    return false;
  collector.registered.store(true, std::memory_order_release);
  return true;
}

void probe_callback(void*, u32, u32, const void*) {}

// Whether a client that we know nothing of has subscribed. CUPTI shows another client in one way only: it refuses a second subscriber. Ours lasts only while we ask.
bool somebody_subscribed() {
  if (subscriber_is_known()) return false;  // it has switched off all that it had: it is no reason to stay away
  if (!stop_unheard()) return false;        // we are it
  if (!collector.api.cuptiSubscribe || !collector.api.cuptiUnsubscribe) return false;
  void* subscriber = nullptr;
  const CuptiResult result = collector.api.cuptiSubscribe(&subscriber, probe_callback, nullptr);
  if (result == kCuptiSuccess) collector.api.cuptiUnsubscribe(subscriber);
  return result == kCuptiMultipleSubscribers;
}

void record_anchor() {
  DeviceClock anchor{};
  if (!take_device_anchor(anchor)) return;
  collector.host.define(&anchor);
}

// What the calling thread waited since then. A client's clock has a unit of its own: there it is not told.
void record_setup_cost(Nanos begin) {
  const Nanos spent = monotonic_nanos() - begin;
  u64 now = 0;
  if (collector.clients_clock.load(std::memory_order_acquire) ||
      collector.api.cuptiGetTimestamp(&now) != kCuptiSuccess || now <= static_cast<u64>(spent))
    return;
  DeviceOverhead cost{};
  cost.header.type = static_cast<u16>(RecordType::DeviceOverhead);
  cost.header.size = sizeof cost;
  cost.start = now - static_cast<u64>(spent);
  cost.finish = now;
  cost.kind = static_cast<u32>(OverheadKind::OwnSetup);
  cost.thread = own_thread_id();
  collector.host.define(&cost);
}

}  // namespace

bool collector_is_ours() { return collector_alive.alive.load(std::memory_order_acquire) == 1; }

void sleep_briefly() {
  const timespec pause{0, 50'000};
  raw_syscall(SYS_nanosleep, raw_pointer(&pause), 0);
}

bool lock_control(Nanos patience) {
  const u32 self = own_thread_id();
  for (const Nanos begin = monotonic_nanos();;) {
    u32 free = 0;
    if (collector.lock.compare_exchange_strong(free, self, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
    if (free == self || monotonic_nanos() - begin > patience) return false;
    sleep_briefly();
  }
}
void unlock_control() { collector.lock.store(0, std::memory_order_release); }

void record_state(DeviceCollection state, const char* reason) {
  collector.state.store(static_cast<u32>(state), std::memory_order_release);
  DeviceState record{};
  record.header.type = static_cast<u16>(RecordType::DeviceState);
  record.header.size = sizeof record;
  record.state = static_cast<u32>(state);
  record.version = collector.version;
  record.kinds = collector.kinds;
  for (int attempt = 0; attempt < 20; ++attempt) {
    record.reason = collector.host.define_text(reason, std::strlen(reason));
    if ((record.reason || !*reason) && collector.host.define(&record)) return;
    sleep_briefly();
  }
}

bool window_is_open() {
  const SegmentControl& control = *producer.control;
  const Ticks now = record_ticks();
  return now >= control.window_begin.load(std::memory_order_relaxed) &&
         now < control.window_end.load(std::memory_order_relaxed);
}

bool take_device_anchor(DeviceClock& best) {
  u64 width = ~0ull;
  for (int i = 0; i < 8; ++i) {
    DeviceClock anchor{};
    const Ticks begin = record_ticks();
    const CuptiResult result = collector.api.cuptiGetTimestamp(&anchor.device);
    const Ticks end = record_ticks();
    if (!checked("cuptiGetTimestamp", result)) return false;
    if (end - begin >= width) continue;
    width = end - begin;
    anchor.realtime = realtime_nanos();
    const bool client = collector.clients_clock.load(std::memory_order_acquire);
    anchor.source = static_cast<u32>(client ? DeviceClockSource::OfClient : DeviceClockSource::OfCupti);
    anchor.header = {static_cast<u16>(RecordType::DeviceClock), sizeof anchor, 0, 0, begin, end};
    best = anchor;
  }
  return true;
}

bool checked(const char* call, CuptiResult result) {
  if (result == kCuptiSuccess) return true;
  fail_collection(call, result);
  return false;
}

void fail_collection(const char* call, CuptiResult result) {
  Sentence reason;
  reason << call << " failed with " << u64{result} << " (" << result_text(result)
         << "); device collection is off for good; " << collector.library.text();
  stop_listening();
  switch_off_kinds();
  // Forced: a buffer of ours that CUPTI still holds would take the records of a client that comes later.
  if (std::strcmp(call, "cuptiActivityFlushAll") != 0 && collector.registered.load(std::memory_order_acquire))
    collector.api.cuptiActivityFlushAll(kFlushForced);
  collector.wants_buffers.store(false, std::memory_order_release);
  restore_settings();
  record_state(DeviceCollection::Failed, reason.text());
}

void switch_off_kinds() {
  if (collector.keys) enable_keys(false);
  collector.keys = false;
  for (u32 kind = 0; kind < 64; ++kind) {
    if (collector.kinds >> kind & 1) collector.api.cuptiActivityDisable(kind);
  }
  collector.kinds = 0;
}

bool switch_on(const char* why, Nanos begin) {
  if (begin == 0) begin = monotonic_nanos();
  if (somebody_subscribed()) {
    if (collector.state.load(std::memory_order_relaxed) != static_cast<u32>(DeviceCollection::Yielded))
      record_state(DeviceCollection::Yielded, "another client has subscribed to CUPTI; it keeps it");
    return false;
  }
  collector.wants_buffers.store(true, std::memory_order_release);
  change_settings();
  if (!register_callbacks() || !enable_kinds()) return false;
  collector.keys = enable_keys(true);
  if (!collector.keys) enable_keys(false);
  Sentence reason;
  reason << collector.library.text() << why;
  if (!collector.keys) reason << "; calls are not numbered by this CUPTI: kernels are joined by their order";
  record_state(DeviceCollection::On, reason.text());
  record_anchor();
  const bool waited = static_cast<i32>(own_thread_id()) != collector.thread_id.load(std::memory_order_relaxed);
  if (waited) record_setup_cost(begin);  // a thread of the program's
  return collector.state.load(std::memory_order_relaxed) == static_cast<u32>(DeviceCollection::On);
}

void await_window(Nanos begin) {
  record_setup_cost(begin);
  record_state(DeviceCollection::Paused, "the window has not begun");
}

void pause_collection() {
  record_anchor();
  if (collector.state.load(std::memory_order_relaxed) != static_cast<u32>(DeviceCollection::On)) return;
  switch_off_kinds();
  if (!checked("cuptiActivityFlushAll", collector.api.cuptiActivityFlushAll(0))) return;
  record_state(DeviceCollection::Paused, "outside of the window");
}

void step_aside(const char* why) {
  const bool was_on = collector.state.load(std::memory_order_relaxed) == static_cast<u32>(DeviceCollection::On);
  stop_listening();
  if (was_on) record_anchor();
  if (!collector_is_ours() ||
      collector.state.load(std::memory_order_relaxed) == static_cast<u32>(DeviceCollection::Failed))
    return;
  switch_off_kinds();
  // Forced: what CUPTI still holds of ours must not be given to the other client.
  if (was_on && !checked("cuptiActivityFlushAll", collector.api.cuptiActivityFlushAll(kFlushForced))) return;
  collector.wants_buffers.store(false, std::memory_order_release);
  restore_settings();
  record_state(DeviceCollection::Yielded, why);
  wake_thread();
}

}  // namespace gputrace
