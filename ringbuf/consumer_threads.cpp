// Threads as the consumer knows them: who there is, what each has seen, what became of it.
#include <algorithm>

#include "base/fault.h"
#include "ringbuf/consumer.h"
#include "ringbuf/consumer_words.h"

namespace gputrace {
namespace {

u64 sane(u64 counter) { return counter < kSane ? counter : 0; }

void copy_name(char (&to)[16], const char (&from)[16]) {
  for (u32 i = 0; i < 16; ++i) to[i] = peek(from[i]);
  to[15] = 0;
}

u64 sum(const u64* dropped) {
  u64 total = 0;
  for (u32 i = 0; i < kDropReasons; ++i) total += dropped[i];
  return total;
}

}  // namespace

void Consumer::read_counters(const ThreadSlot& slot, Thread& thread) const {
  for (u32 i = 0; i < kProducerReasons; ++i) thread.info.dropped[i] = sane(peek(slot.dropped[i]));
  thread.info.seen = std::max(sane(peek(slot.seen)), thread.info.taken + sum(thread.info.dropped));
  thread.info.end = peek(slot.end);
}

// Threads whose slots were Ended before the pass scanned the blocks, and that have none left: their counters are final.
void Consumer::finish_ended() {
  if (!ended_.empty()) scan_blocks(false);  // those taken are free by now
  for (const u64 key : ended_) {
    Thread* thread = find(static_cast<u32>(key >> 32), static_cast<u32>(key));
    if (!thread || thread->has_blocks) continue;
    ThreadSlot& slot = segment_.slot(thread->info.slot);
    read_counters(slot, *thread);
    GT_FAULT_POINT("counters read");
    u32 state = static_cast<u32>(SlotState::Ended);
    if (peek(slot.incarnation) != thread->info.incarnation) continue;
    if (slot.state.compare_exchange_strong(state, static_cast<u32>(SlotState::Free), std::memory_order_acq_rel))
      finish(*thread, ended_sum_);
  }
  // Threads whose slot the producer took back while nobody drained: what they have dropped is in retired_*.
  std::vector<u64> gone;
  for (const auto& [key, thread] : threads_)
    if (!thread.has_blocks && peek(segment_.slot(thread.info.slot).incarnation) != thread.info.incarnation)
      gone.push_back(key);
  for (const u64 key : gone) finish(threads_.at(key), retired_sum_);
}

void Consumer::finish_all() {
  std::vector<u64> keys;
  for (const auto& [key, thread] : threads_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  for (const u64 key : keys) {
    Thread& thread = threads_.at(key);
    const ThreadSlot& slot = segment_.slot(thread.info.slot);
    const bool own = peek(slot.incarnation) == thread.info.incarnation;
    if (own) read_counters(slot, thread);
    finish(thread, own ? ended_sum_ : retired_sum_);
  }
}

void Consumer::finish(Thread& thread, RingThread& sums) {
  RingThread& info = thread.info;
  info.seen = std::max(info.seen, info.taken + sum(info.dropped));
  const u64 rest = info.seen - info.taken - sum(info.dropped);
  info.dropped[segment_.header().on_full == OnFull::Overwrite ? kOverwritten : kLost] += rest;
  sums.seen += info.seen;
  sums.taken += info.taken;
  for (u32 i = 0; i < kDropReasons; ++i) sums.dropped[i] += info.dropped[i];
  sink_.thread_ended(info);
  finished_[info.slot] = std::max(finished_[info.slot], info.incarnation + 1);
  threads_.erase(key_of(info.slot, info.incarnation));
}

Consumer::Thread* Consumer::find(u32 slot, u32 incarnation) {
  const auto found = threads_.find(key_of(slot, incarnation));
  return found == threads_.end() ? nullptr : &found->second;
}

// nullptr: more threads than there can be.
Consumer::Thread* Consumer::make(u32 slot, u32 incarnation) {
  if (Thread* known = find(slot, incarnation)) return known;
  if (threads_.size() >= segment_.header().slot_count + segment_.header().block_count) return nullptr;
  Thread& thread = threads_[key_of(slot, incarnation)];
  thread.info.slot = slot;
  thread.info.incarnation = incarnation;
  if (const auto had = expected_.find(key_of(slot, incarnation)); had != expected_.end()) {
    thread.next_record = had->second.next_record;
    thread.info.taken = had->second.taken;
    thread.resumed = true;
  }
  const ThreadSlot& words = segment_.slot(slot);
  if (peek(words.incarnation) == incarnation) {
    thread.info.tid = slot ? peek(words.tid) : 0;
    thread.info.begin = peek(words.begin);
    copy_name(thread.info.name, words.name);
  }
  sink_.thread_began(thread.info);
  return &thread;
}

std::vector<RingThread> Consumer::threads() {
  std::vector<RingThread> all;
  for (auto& [key, thread] : threads_) {
    const ThreadSlot& slot = segment_.slot(thread.info.slot);
    if (peek(slot.incarnation) == thread.info.incarnation) read_counters(slot, thread);
    all.push_back(thread.info);
  }
  return all;
}

RingThread Consumer::process() {
  RingThread all = ended_sum_;
  const auto add = [&all](const RingThread& more) {
    all.seen += more.seen;
    all.taken += more.taken;
    for (u32 i = 0; i < kDropReasons; ++i) all.dropped[i] += more.dropped[i];
  };
  for (const RingThread& thread : threads()) add(thread);
  const SegmentControl& control = segment_.control();
  RingThread retired = retired_sum_;
  for (u32 i = 0; i < kProducerReasons; ++i)
    retired.dropped[i] = sane(control.retired_dropped[i].load(std::memory_order_relaxed));
  const u64 known = retired.taken + sum(retired.dropped);
  retired.seen = std::max(sane(control.retired_seen.load(std::memory_order_relaxed)), known);
  retired.dropped[kLost] += retired.seen - known;
  add(retired);
  const u64 unslotted = sane(control.unslotted.load(std::memory_order_relaxed));
  all.seen += unslotted;
  all.dropped[static_cast<u32>(DropReason::NoSlot)] += unslotted;
  return all;
}

std::vector<Consumer::OpenCall> Consumer::open_calls() const {
  std::vector<OpenCall> calls;
  for (u32 i = 0; i < segment_.header().slot_count; ++i) {
    const ThreadSlot& slot = segment_.slot(i);
    if (slot.state.load(std::memory_order_acquire) != static_cast<u32>(SlotState::Live)) continue;
    // What an exception or a longjmp left open lies deeper than the thread is now.
    const u32 open = std::min(peek(slot.depth), kInFlightDepth);
    for (u32 depth = 0; depth < open; ++depth) {
      const InFlightCall& call = slot.in_flight[depth];
      const u64 begin = call.begin.load(std::memory_order_acquire);
      if (!begin) continue;
      calls.push_back({i, peek(slot.incarnation), peek(slot.tid), peek(call.call), begin, peek(call.argument), depth});
    }
  }
  return calls;
}

}  // namespace gputrace
