#include "cupti/ring.h"

#include <cstring>

#include "base/raw_syscall.h"

namespace gputrace {
namespace {

constexpr u32 kPausesBeforeDeathLook = 8;
constexpr Nanos kBetweenDeathLooks = 128'000'000;
constexpr Nanos kSidecarPatience = 2'000'000'000;  // without a sign of life of the sidecar

void pause_briefly() {
  const timespec pause{0, 1'000'000};
  raw_syscall(SYS_nanosleep, raw_pointer(&pause), 0);
}

// A sidecar takes its time to begin on a busy machine; what has not begun by then does not come.
bool is_none_coming() { return record_ticks() - producer.session_begin > producer.stale_ticks; }

}  // namespace

void DeviceRing::join(u64 generation) {
  generation_ = generation;
  thread_state = ThreadState{};
  join_session_patiently(generation);
  state_ = thread_state;
  thread_state = ThreadState{};
  thread_state.busy = kUntraced;
}

void DeviceRing::leave() {
  if (!state_.slot) return;
  thread_state = state_;
  leave_session();
  state_ = ThreadState{};
  thread_state = ThreadState{};
  thread_state.busy = kUntraced;
}

bool DeviceRing::wait_for_room(u32 size) {
  const SegmentControl& control = *producer.control;
  Nanos since = monotonic_nanos();
  u64 beat = control.heartbeat.load(std::memory_order_relaxed);
  for (u32 pauses = 0;; ++pauses) {
    // The program's threads may have ended with all that there is in their hands, and no new one comes that would notice. A sidecar
    // that keeps up is there before that is asked, which is a system call for each thread.
    if (pauses >= kPausesBeforeDeathLook && monotonic_nanos() >= next_death_look_) {
      end_dead_threads();
      next_death_look_ = monotonic_nanos() + kBetweenDeathLooks;
    }
    pause_briefly();
    if (room_for(state_, size)) return true;
    if (control.consumer_state.load(std::memory_order_relaxed) == static_cast<u32>(ConsumerState::Gone)) return false;
    const u64 now_beat = control.heartbeat.load(std::memory_order_relaxed);
    const Nanos now = monotonic_nanos();
    if (now_beat != beat) {
      beat = now_beat;
      since = now;
    } else if (beat ? now - since > kSidecarPatience : is_none_coming()) {
      return false;
    }
  }
}

bool DeviceRing::write(RecordHeader& record) {
  make_room(record.size);
  record.begin = record.end = record_ticks();
  return put(record);
}

bool DeviceRing::write_stamped(const RecordHeader& record) {
  make_room(record.size);
  return put(record);
}

void DeviceRing::make_room(u32 size) {
  if (state_.cursor && static_cast<u64>(state_.limit - state_.cursor) >= size) return;
  if (!patient_) {  // nobody drains: a look now and then is enough
    const Nanos now = monotonic_nanos();
    if (now < next_look_) return;
    next_look_ = now + 1'000'000;
  }
  patient_ = room_for(state_, size) || (patient_ && wait_for_room(size));
}

bool DeviceRing::put(const RecordHeader& record) {
  char* at = reserve(state_, record.size, record_ticks());
  if (!at) return false;
  std::memcpy(at, &record, record.size);
  commit(state_, at, record.size, generation_);
  return true;
}

}  // namespace gputrace
