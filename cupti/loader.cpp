#include "cupti/loader.h"

#include <linux/futex.h>
#include <sys/mman.h>

#include "base/raw_syscall.h"
#include "cupti/collector.h"
#include "cupti/untraced.h"

extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* object);

namespace gputrace {
namespace {

constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK
constexpr Nanos kExitPatience = 2'000'000'000;
constexpr u64 kStarted = 1;

// Stays in a child of fork: what CUPTI holds there is its parent's.
constinit std::atomic<u32> started{0};
constinit std::atomic<bool> exit_registered{false};

}  // namespace

constinit std::atomic<bool> device_awaits_work{false};

namespace {

i32 own_pid() { return static_cast<i32>(raw_syscall(SYS_getpid)); }

// Runs among the program's exit handlers, before the driver's and CUPTI's own, which were registered earlier.
void process_exits(void*) {
  if (!collector_is_ours() || collector.pid != own_pid()) return;
  if (!fetches()) return;
  if (!start_thread()) return;  // no work was given: what CUPTI has is fetched now
  collector.stopping.store(1, std::memory_order_release);
  wake_thread();
  const Nanos begin = monotonic_nanos();
  while (!collector.stopped.load(std::memory_order_acquire)) {
    const Nanos left = kExitPatience - (monotonic_nanos() - begin);
    if (left <= 0) return;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    raw_syscall(SYS_futex, raw_pointer(&collector.stopped), FUTEX_WAIT_PRIVATE, 0, raw_pointer(&timeout));
  }
}

// Under the lock.
void fail_without_thread() {
  switch_off_kinds();
  record_state(DeviceCollection::Failed, "a thread to collect device records could not be started");
}

// Under the lock. What comes out is in collector.state.
void open_and_switch_on() {
  const Nanos begin = monotonic_nanos();
  Sentence said;
  if (!open_cupti(collector.options, collector.host, collector.api, said)) {
    record_state(DeviceCollection::Never, said.text());
    return;
  }
  collector.library.clear();  // a parent of ours may have had one
  collector.library << said.text();
  if (!checked("cuptiGetVersion", collector.api.cuptiGetVersion(&collector.version))) return;
  if (collector.version < kCupti12_0) {
    said << " is older than 12.0 (version " << u64{collector.version} << ")";
    record_state(DeviceCollection::Never, said.text());
    return;
  }
  collector.rules.version = collector.version;
  collector.rules.latency = collector.options.latency;
  collector.buffers.configure(collector.options.buffer_budget);
  if (Sentence other; find_other_profiler(collector.host, other)) {
    said.clear();
    said << "another profiler is there: " << other.text();
    record_state(DeviceCollection::Yielded, said.text());
    return;
  }
  if (collector.options.latency) {
    const auto enable = collector.api.cuptiActivityEnableLatencyTimestamps;
    if (!enable || enable(1) != kCuptiSuccess) {
      collector.library << "; queued and submitted stamps were asked for and are not to be had";
      collector.rules.latency = false;
    }
  }
  if (client_is_present())
    record_state(DeviceCollection::Yielded, "another client uses CUPTI");
  else if (window_is_open())
    switch_on("", begin);
  else
    await_window(begin);
  const auto state = static_cast<DeviceCollection>(collector.state.load(std::memory_order_relaxed));
  if (state == DeviceCollection::Failed) return;
  collector.thread.store(FetchThread::Due, std::memory_order_release);
  if (state == DeviceCollection::On)
    device_awaits_work.store(true, std::memory_order_relaxed);
  else if (!start_thread())  // which waits for the window, or for the other client to leave
    return fail_without_thread();
  if (!exit_registered.exchange(true)) __cxa_atexit(process_exits, nullptr, nullptr);
}

// A record that only maps ids; nothing is lost for good without it.
template <typename Record>
void tell(Record& record) {
  record.header.type = static_cast<u16>(Record::kType);
  record.header.size = sizeof record;
  collector.host.define(&record);
}

}  // namespace

bool device_is_on() {
  if (!collector_is_ours()) return false;
  const auto state = static_cast<DeviceCollection>(collector.state.load(std::memory_order_acquire));
  return state == DeviceCollection::On || state == DeviceCollection::Paused;
}

void device_start(const DeviceOptions& options, const DeviceHost& host) {
  if (started.exchange(kStarted)) {
    if (collector_is_ours() || collector.pid == own_pid()) return;
    collector.host = host;
    collector.kinds = 0;
    record_state(DeviceCollection::Never,
                 "forked from a process that had begun to use CUPTI; what is inherited is left alone");
    return;
  }
  if (raw_syscall(SYS_madvise, raw_pointer(&collector_alive), sizeof collector_alive, kWipeOnFork) != 0) return;
  UntracedScope untraced;
  collector.options = options;
  collector.host = host;
  collector.pid = own_pid();
  collector_alive.alive.store(1, std::memory_order_release);
  ControlLock lock;
  open_and_switch_on();
}

void device_work_given() {
  device_awaits_work.store(false, std::memory_order_relaxed);
  if (!collector_is_ours()) return;  // a child of fork
  UntracedScope untraced;
  if (start_thread()) return;
  ControlLock lock;
  if (lock) fail_without_thread();
}

void device_leave() {
  process_exits(nullptr);
  collector_alive.alive.store(0, std::memory_order_release);
}

void device_window_changed() {
  if (!device_is_on()) return;
  UntracedScope untraced;
  ControlLock lock;
  if (!lock || !device_is_on()) return;  // the thread follows within its period
  const auto state = static_cast<DeviceCollection>(collector.state.load(std::memory_order_relaxed));
  const bool open = window_is_open();
  if (open && state == DeviceCollection::Paused) switch_on(", the window is open");
  if (!open && state == DeviceCollection::On) pause_collection();
}

void device_stream_seen(u64 context, u64 stream, bool per_thread, u32 thread) {
  if (!device_is_on() || !context) return;
  const CuptiApi& api = collector.api;
  if (!api.cuptiGetContextId || !api.cuptiGetStreamIdEx) return;
  UntracedScope untraced;
  DeviceStream record{};
  record.stream = stream;
  record.context_handle = context;
  record.per_thread = per_thread;
  record.thread = thread;
  void* const context_handle = reinterpret_cast<void*>(context);
  if (api.cuptiGetContextId(context_handle, &record.context) != kCuptiSuccess) return;
  if (api.cuptiGetStreamIdEx(context_handle, reinterpret_cast<void*>(stream), per_thread, &record.id) != kCuptiSuccess)
    return;
  tell(record);
}

void device_graph_seen(u64 exec) {
  if (!device_is_on() || !collector.api.cuptiGetGraphExecId) return;
  UntracedScope untraced;
  DeviceGraphNode record{};
  record.exec = exec;
  if (collector.api.cuptiGetGraphExecId(reinterpret_cast<void*>(exec), &record.graph) == kCuptiSuccess) tell(record);
}

}  // namespace gputrace
