// Other clients of CUPTI in the process: the user's own profiler comes first.
//
//   they come    their subscription, their buffer callbacks, their settings or their first kind pass through us: we
//                flush, disable ours, put back what we had set and step aside before the real call
//   they leave   nothing of theirs is enabled any more and nobody is subscribed, or cuptiFinalize; and a second has
//                passed without a call
#include <sys/mman.h>

#include "base/raw_syscall.h"
#include "cupti/collector.h"
#include "cupti/untraced.h"

namespace gputrace {
namespace {

constexpr Nanos kQuiet = 1'000'000'000;
// A client that registered callbacks and has enabled nothing since is about to.
constexpr Nanos kAboutTo = 10'000'000'000;

// What they have enabled, exactly, up to kMost things. No lock: a thing that two threads enable at once may stand here
// twice, and goes all at once.
class Enabled {
 public:
  void add(u64 what) {
    std::atomic<u64>* free = nullptr;
    for (std::atomic<u64>& place : places_) {
      const u64 there = place.load(std::memory_order_relaxed);
      if (there == what) return;
      if (!there && !free) free = &place;
    }
    u64 nothing = 0;
    // A place that was lost to another thread just now is as good as none: rare, and we stay away.
    if (!free || !free->compare_exchange_strong(nothing, what, std::memory_order_release))
      more_.store(true, std::memory_order_release);
  }
  void remove(u64 what) {
    for (std::atomic<u64>& place : places_) {
      u64 there = what;
      place.compare_exchange_strong(there, 0, std::memory_order_release);
    }
  }
  void remove_of(u64 owner) {
    for (std::atomic<u64>& place : places_) {
      u64 there = place.load(std::memory_order_relaxed);
      if (there && owner_of(there) == owner) place.compare_exchange_strong(there, 0, std::memory_order_release);
    }
  }
  void clear() {
    for (std::atomic<u64>& place : places_) place.store(0, std::memory_order_relaxed);
    more_.store(false, std::memory_order_release);
  }
  bool any() const {
    if (more_.load(std::memory_order_acquire)) return true;
    for (const std::atomic<u64>& place : places_) {
      if (place.load(std::memory_order_acquire)) return true;
    }
    return false;
  }

 private:
  static constexpr u32 kMost = 256;
  std::atomic<u64> places_[kMost];
  std::atomic<bool> more_;  // than could be kept: until cuptiFinalize
};

struct Clients {
  std::atomic<i32> subscribers;
  Enabled enabled;
  std::atomic<bool> had_enabled;  // since they last came
  std::atomic<bool> registered;
  std::atomic<i32> inside;     // calls of theirs that have not returned
  std::atomic<i64> last_call;  // CLOCK_MONOTONIC ns; 0: never
  std::atomic<void*> requested;
  std::atomic<void*> completed;
};
constinit Clients clients{};

Nanos quiet_for() { return monotonic_nanos() - clients.last_call.load(std::memory_order_relaxed); }

bool took_over(CuptiClientCall call) {
  return call != CuptiClientCall::Unsubscribe && call != CuptiClientCall::Disable;
}

// CUPTI's stamps are those of a client's callback from now on, which stays when the client is done; or CUPTI's own again.
void clock_is(bool clients_own) {
  collector.clients_clock.store(clients_own, std::memory_order_release);
  collector.clock_changed.store(true, std::memory_order_release);
}

bool holds() {
  if (clients.enabled.any()) return true;
  if (clients.had_enabled.load(std::memory_order_relaxed)) return false;  // it had, and switched all of it off
  // Subscribed or registered, and nothing enabled: about to, or it uses callbacks alone, which we do not touch.
  const bool came =
      clients.subscribers.load(std::memory_order_relaxed) > 0 || clients.registered.load(std::memory_order_relaxed);
  return came && quiet_for() < kAboutTo;
}

}  // namespace

bool client_is_present() { return clients.last_call.load(std::memory_order_relaxed) != 0 && holds(); }

bool client_has_left() {
  const bool was_there = clients.last_call.load(std::memory_order_relaxed) != 0;
  const bool calls = clients.inside.load(std::memory_order_acquire) > 0;
  return was_there && !calls && quiet_for() > kQuiet && !holds();
}

bool subscriber_is_known() { return clients.subscribers.load(std::memory_order_relaxed) > 0; }

void client_requested(u8** buffer, std::size_t* size, std::size_t* max_records) {
  if (auto* requested = reinterpret_cast<CuptiBufferRequested>(clients.requested.load(std::memory_order_acquire)))
    requested(buffer, size, max_records);
}
void client_completed(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size) {
  if (auto* completed = reinterpret_cast<CuptiBufferCompleted>(clients.completed.load(std::memory_order_acquire)))
    completed(context, stream, buffer, size, valid_size);
}

void device_client_calls(CuptiClientCall call) {
  clients.inside.fetch_add(1, std::memory_order_acq_rel);
  clients.last_call.store(monotonic_nanos(), std::memory_order_relaxed);
  if (call == CuptiClientCall::Subscribe || call == CuptiClientCall::Register) {
    clients.had_enabled.store(false, std::memory_order_relaxed);
    if (call == CuptiClientCall::Register) clients.registered.store(true, std::memory_order_relaxed);
  }
  if (!took_over(call) || !collector_is_ours()) return;
  UntracedScope untraced;
  const bool ends = call == CuptiClientCall::Finalize;
  {
    // Not to be had in its time: our thread is inside CUPTI, and CUPTI may be waiting for this one. The client comes
    // first all the same.
    ControlLock lock;
    const auto state = static_cast<DeviceCollection>(collector.state.load(std::memory_order_relaxed));
    if (state == DeviceCollection::On || state == DeviceCollection::Paused)
      step_aside(ends ? "the program detached CUPTI" : "another client of CUPTI has come; it comes first");
  }
  if (ends) finish_reading();
}

void device_client_called(CuptiClientCall call, u64 what, u32 result) {
  clients.last_call.store(monotonic_nanos(), std::memory_order_relaxed);
  clients.inside.fetch_sub(1, std::memory_order_acq_rel);
  if (result != kCuptiSuccess) return;
  switch (call) {
    case CuptiClientCall::Subscribe:
      clients.subscribers.fetch_add(1, std::memory_order_relaxed);
      break;
    case CuptiClientCall::Unsubscribe:
      clients.subscribers.fetch_sub(1, std::memory_order_relaxed);
      if (what) clients.enabled.remove_of(what);
      break;
    case CuptiClientCall::Register:
    case CuptiClientCall::Configure:  // of things that we change too: put back before, and asked for again when we come
      break;
    case CuptiClientCall::Clock:
      clock_is(true);
      break;
    case CuptiClientCall::Enable:
      clients.enabled.add(what);
      clients.had_enabled.store(true, std::memory_order_relaxed);
      break;
    case CuptiClientCall::Disable:
      clients.enabled.remove(what);
      break;
    case CuptiClientCall::Finalize:
      clients.subscribers.store(0, std::memory_order_relaxed);
      clients.enabled.clear();
      clients.registered.store(false, std::memory_order_relaxed);
      collector.registered.store(false, std::memory_order_release);
      clock_is(false);
      break;
  }
}

void device_client_registered_own() { collector.registered.store(false, std::memory_order_release); }

bool device_client_callbacks(void** requested, void** completed) {
  if (!*requested || !*completed) return false;  // CUPTI's to refuse
  clients.requested.store(*requested, std::memory_order_release);
  clients.completed.store(*completed, std::memory_order_release);
  // Ours stay where they are as long as there is a way back for us, or a buffer of ours that would be given to theirs.
  if (!collector_is_ours() || !(fetches() || collector.buffers.held())) return false;
  *requested = reinterpret_cast<void*>(buffer_requested);
  *completed = reinterpret_cast<void*>(buffer_completed);
  return true;
}

}  // namespace gputrace
