// Other clients of CUPTI in the process: the user's own profiler comes first.
//
//   they come    their subscription, their buffer callbacks or their first kind passes through us: we flush, disable
//                ours and step aside before the real call
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

struct Clients {
  std::atomic<i32> subscribers;
  std::atomic<u64> kinds;       // enabled by them
  std::atomic<bool> had_kinds;  // since they last came
  std::atomic<bool> registered;
  std::atomic<i64> last_call;  // CLOCK_MONOTONIC ns; 0: never
  std::atomic<void*> requested;
  std::atomic<void*> completed;
};
constinit Clients clients{};

bool took_over(CuptiClientCall call) {
  return call == CuptiClientCall::Subscribe || call == CuptiClientCall::Register || call == CuptiClientCall::Enable ||
         call == CuptiClientCall::Finalize;
}

bool holds() {
  if (clients.kinds.load(std::memory_order_acquire)) return true;
  if (clients.had_kinds.load(std::memory_order_relaxed)) return false;  // it had, and switched all of them off
  if (clients.subscribers.load(std::memory_order_relaxed) > 0) return true;
  return clients.registered.load(std::memory_order_relaxed) &&
         monotonic_nanos() - clients.last_call.load(std::memory_order_relaxed) < kAboutTo;
}

}  // namespace

bool client_is_present() { return clients.last_call.load(std::memory_order_relaxed) != 0 && holds(); }

bool client_has_left() {
  const Nanos last = clients.last_call.load(std::memory_order_relaxed);
  return last && monotonic_nanos() - last > kQuiet && !holds();
}

bool client_has_callbacks() { return clients.completed.load(std::memory_order_relaxed) != nullptr; }

void client_requested(u8** buffer, std::size_t* size, std::size_t* max_records) {
  if (auto* requested = reinterpret_cast<CuptiBufferRequested>(clients.requested.load(std::memory_order_acquire)))
    requested(buffer, size, max_records);
}
void client_completed(void* context, u32 stream, u8* buffer, std::size_t size, std::size_t valid_size) {
  if (auto* completed = reinterpret_cast<CuptiBufferCompleted>(clients.completed.load(std::memory_order_acquire)))
    completed(context, stream, buffer, size, valid_size);
}

void device_client_calls(CuptiClientCall call) {
  clients.last_call.store(monotonic_nanos(), std::memory_order_relaxed);
  if (call == CuptiClientCall::Subscribe || call == CuptiClientCall::Register) {
    clients.had_kinds.store(false, std::memory_order_relaxed);
    if (call == CuptiClientCall::Register) clients.registered.store(true, std::memory_order_relaxed);
  }
  if (!took_over(call) || !collector_is_ours()) return;
  UntracedScope untraced;
  ControlLock lock;
  const auto state = static_cast<DeviceCollection>(collector.state.load(std::memory_order_relaxed));
  if (state != DeviceCollection::On && state != DeviceCollection::Paused) return;
  step_aside(call == CuptiClientCall::Finalize ? "the program detached CUPTI"
                                               : "another client of CUPTI has come; it comes first");
}

void device_client_called(CuptiClientCall call, u32 kind, u32 result) {
  clients.last_call.store(monotonic_nanos(), std::memory_order_relaxed);
  if (result != kCuptiSuccess) return;
  const u64 bit = kind < 64 ? 1ull << kind : 0;
  switch (call) {
    case CuptiClientCall::Subscribe:
      clients.subscribers.fetch_add(1, std::memory_order_relaxed);
      break;
    case CuptiClientCall::Unsubscribe:
      clients.subscribers.fetch_sub(1, std::memory_order_relaxed);
      break;
    case CuptiClientCall::Register:
      break;
    case CuptiClientCall::Enable:
      clients.kinds.fetch_or(bit, std::memory_order_release);
      clients.had_kinds.store(true, std::memory_order_relaxed);
      break;
    case CuptiClientCall::Disable:
      clients.kinds.fetch_and(~bit, std::memory_order_release);
      break;
    case CuptiClientCall::Finalize:
      clients.subscribers.store(0, std::memory_order_relaxed);
      clients.kinds.store(0, std::memory_order_relaxed);
      clients.registered.store(false, std::memory_order_relaxed);
      collector.registered = false;
      break;
  }
}

bool device_client_callbacks(void** requested, void** completed) {
  if (!*requested || !*completed) return false;  // CUPTI's to refuse
  clients.requested.store(*requested, std::memory_order_release);
  clients.completed.store(*completed, std::memory_order_release);
  if (!collector_is_ours()) return false;
  *requested = reinterpret_cast<void*>(buffer_requested);
  *completed = reinterpret_cast<void*>(buffer_completed);
  return true;
}

}  // namespace gputrace
