#include "ringbuf/consumer.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fault.h"
#include "trace/record.h"

namespace gputrace {
namespace {

constexpr u32 kProducerReasons =
    static_cast<u32>(DropReason::Overwritten);  // the reasons below are the producer's to count
constexpr u32 kOverwritten = static_cast<u32>(DropReason::Overwritten), kLost = static_cast<u32>(DropReason::Lost);
constexpr u64 kSane = 1ull << 56;  // more records than that nobody writes: a counter beyond it is nonsense

u64 key_of(u32 slot, u32 incarnation) { return static_cast<u64>(slot) << 32 | incarnation; }

// Plain words of the other process: read once, whatever they are.
template <typename T>
T peek(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

u64 sane(u64 counter) { return counter < kSane ? counter : 0; }

void copy_name(char (&to)[16], const char (&from)[16]) {
  for (u32 i = 0; i < 16; ++i) to[i] = peek(from[i]);
  to[15] = 0;
}

// How many bytes of `data` are a chain of whole records, and how many records.
u32 valid_prefix(const u8* data, u32 size, u32& records) {
  u32 at = 0;
  records = 0;
  while (size - at >= sizeof(RecordHeader)) {
    u16 bytes;
    std::memcpy(&bytes, data + at + offsetof(RecordHeader, size), sizeof bytes);
    if (bytes < sizeof(RecordHeader) || bytes % 8 || bytes > size - at) break;
    at += bytes;
    ++records;
  }
  return at;
}

u64 sum(const u64* dropped) {
  u64 total = 0;
  for (u32 i = 0; i < kDropReasons; ++i) total += dropped[i];
  return total;
}

}  // namespace

namespace {

void free_block(const SegmentView& segment, u32 index) {
  u64 word = segment.state(index).load(std::memory_order_relaxed);
  if (block_state(word) != BlockState::Reading) return;  // nobody but us changes it, unless the other side is broken
  segment.state(index).compare_exchange_strong(word, next_block_word(word, BlockState::Free),
                                               std::memory_order_acq_rel);
}

}  // namespace

Consumer::Consumer(SegmentView segment, RecordSink& sink)
    : segment_(std::move(segment)),
      sink_(sink),
      finished_(segment_.header().slot_count),
      partials_(segment_.header().block_count),
      buffer_(segment_.block_capacity()) {}

bool Consumer::acquire(const SegmentView& segment, i32 self) {
  SegmentControl& control = segment.control();
  i32 holder = 0;
  if (!control.consumer_pid.compare_exchange_strong(holder, self)) {
    const bool alive = holder > 0 && (::kill(holder, 0) == 0 || errno != ESRCH);
    if (alive || !control.consumer_pid.compare_exchange_strong(holder, self)) return false;
  }
  control.consumer_state.store(static_cast<u32>(ConsumerState::Draining), std::memory_order_relaxed);
  return true;
}

void Consumer::release() {
  segment_.control().consumer_state.store(static_cast<u32>(ConsumerState::Gone), std::memory_order_release);
}

u64 Consumer::drain() {
  const u64 bytes = pass(false);
  segment_.control().heartbeat.store(static_cast<u64>(monotonic_nanos()), std::memory_order_relaxed);
  return bytes;
}

void Consumer::drain_last() {
  pass(true);
  finish_all();
}

void Consumer::free_held() {
  for (const u32 index : held_) free_block(segment_, index);
  held_.clear();
}

double Consumer::held() const { return static_cast<double>(held_.size()) / segment_.header().block_count; }

void Consumer::expect(u32 slot, u32 incarnation, u64 next_record, u64 taken) {
  expected_[key_of(slot, incarnation)] = {next_record, taken};
}

// Slots first: what a thread has committed before its slot was seen Ended is found by the scan of the blocks that
// follows.
u64 Consumer::pass(bool last) {
  scan_slots();
  scan_blocks(last);
  if (sort_candidates()) {
    // A block came whose predecessor was not found. Either that one was claimed after the scan had passed it, then a
    // second scan finds it; or it was overwritten. What only the second scan has seen may have the same fate again:
    // that is left to the next pass.
    for (const Candidate& candidate : candidates_) note_newest(candidate);
    scan_blocks(last);
    sort_candidates();
    drop_uncertain();
  }
  u64 bytes = 0;
  for (const Candidate& candidate : candidates_) bytes += take(candidate, last);
  if (!last) finish_ended();
  return bytes;
}

void Consumer::scan_slots() {
  ended_.clear();
  for (u32 i = 0; i < segment_.header().slot_count; ++i) {
    const ThreadSlot& slot = segment_.slot(i);
    const u32 state = slot.state.load(std::memory_order_acquire);
    if (state != static_cast<u32>(SlotState::Live) && state != static_cast<u32>(SlotState::Ended)) continue;
    GT_FAULT_POINT("slot seen");
    const u32 incarnation = __atomic_load_n(&slot.incarnation, __ATOMIC_ACQUIRE);
    // Incarnation 0: taken, and not opened yet. One that has ended: taken again, and not opened yet.
    if ((i && !incarnation) || incarnation < finished_[i]) continue;
    make(i, incarnation);
    if (state == static_cast<u32>(SlotState::Ended)) ended_.push_back(key_of(i, incarnation));
  }
}

void Consumer::scan_blocks(bool last) {
  const u32 count = segment_.header().block_count;
  u32 used = 0;
  candidates_.clear();
  for (auto& [key, thread] : threads_) thread.has_blocks = false;
  for (u32 i = 0; i < count; ++i) {
    u64 word = segment_.state(i).load(std::memory_order_acquire);
    if (block_state(word) == BlockState::Free) continue;
    if (block_state(word) == BlockState::Claimed) {  // what its words say is its last owner's
      ++used;
      continue;
    }
    GT_FAULT_POINT("state read");
    ++used;
    if (block_state(word) == BlockState::Reading) {
      if (!last || std::find(held_.begin(), held_.end(), i) != held_.end()) continue;
      // A consumer before us was reading it when it was killed.
      const u64 full = next_block_word(word, BlockState::Full);
      if (!segment_.state(i).compare_exchange_strong(word, full, std::memory_order_acq_rel)) continue;
      word = full;
    }
    Candidate candidate = read_header(i, word);
    if (block_state(word) == BlockState::Writing && (candidate.nobody || candidate.committed == 0)) continue;
    if (!candidate.nobody) {
      Thread* thread = make(candidate.slot, candidate.incarnation);
      if (thread) thread->has_blocks = true;
      candidate.nobody = !thread;
    }
    candidates_.push_back(candidate);
  }
  fill_ = static_cast<double>(used) / count;
}

Consumer::Candidate Consumer::read_header(u32 index, u64 word) const {
  const BlockHeader& block = segment_.block(index);
  Candidate candidate{};
  candidate.index = index;
  candidate.word = word;
  candidate.slot = peek(block.slot);
  GT_FAULT_POINT("slot read");
  candidate.incarnation = peek(block.incarnation);
  GT_FAULT_POINT("incarnation read");
  candidate.sequence = peek(block.sequence);
  GT_FAULT_POINT("sequence read");
  candidate.first_record = peek(block.first_record);
  GT_FAULT_POINT("first_record read");
  // The words first: in the other order a block that is taken meanwhile could show its new owner's words with the old
  // one's bytes. Pairs with the release fence in the producer's take_block().
  std::atomic_thread_fence(std::memory_order_acquire);
  candidate.committed = std::min(block.committed.load(std::memory_order_acquire),
                                 segment_.block_capacity());  // pairs with the release in the producer's commit()
  GT_FAULT_POINT("committed read");
  candidate.nobody =
      candidate.slot >= segment_.header().slot_count || candidate.incarnation < finished_[candidate.slot];
  return candidate;
}

// By thread, then by sequence. True: some thread's next block is not there and a later one is.
bool Consumer::sort_candidates() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.nobody != b.nobody) return a.nobody < b.nobody;
    if (a.slot != b.slot) return a.slot < b.slot;
    if (a.incarnation != b.incarnation) return a.incarnation < b.incarnation;
    if (a.sequence != b.sequence) return a.sequence < b.sequence;
    return a.index < b.index;
  });
  const Thread* thread = nullptr;
  u32 next = 0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.nobody) break;
    const Thread* owner = find(candidate.slot, candidate.incarnation);
    if (owner != thread) next = owner->next_sequence;
    thread = owner;
    if (candidate.sequence > next) return true;
    next = std::max(next, candidate.sequence + 1);
  }
  return false;
}

void Consumer::note_newest(const Candidate& candidate) {
  if (candidate.nobody) return;
  Thread& thread = *find(candidate.slot, candidate.incarnation);
  thread.newest = std::max(thread.newest, candidate.sequence);
}

// After the second scan: leaves out what comes after a jump to a block that the first scan has not seen.
void Consumer::drop_uncertain() {
  const Thread* thread = nullptr;
  u32 next = 0;
  bool cut = false;
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.nobody) return false;
    const Thread* owner = find(candidate.slot, candidate.incarnation);
    if (owner != thread) {
      next = owner->next_sequence;
      cut = false;
    }
    thread = owner;
    cut = cut || (candidate.sequence > next && candidate.sequence > owner->newest);
    next = std::max(next, candidate.sequence + 1);
    return cut;
  });
}

// Takes what is new of one block; frees it when its owner is done with it.
u64 Consumer::take(const Candidate& candidate, bool last) {
  u64 word = candidate.word;
  if (block_state(word) == BlockState::Writing) {
    // Handed over since the scan: all of it is wanted now, for the same scan may have seen the block that came after.
    const u64 full = next_block_word(word, BlockState::Full);
    if (segment_.state(candidate.index).load(std::memory_order_acquire) == full) word = full;
  }
  const bool exclusive = last || block_state(word) == BlockState::Full || owner_has_ended(candidate);
  GT_FAULT_POINT("to be taken");
  if (!exclusive) return take_records(candidate, false);
  const u64 reading = next_block_word(word, BlockState::Reading);
  if (!segment_.state(candidate.index).compare_exchange_strong(word, reading, std::memory_order_acq_rel)) return 0;
  GT_FAULT_POINT("block is being read");
  const u64 bytes = take_records(read_header(candidate.index, reading), true);
  GT_FAULT_POINT("block was read");
  partials_[candidate.index] = {};
  if (holds_)
    held_.push_back(candidate.index);
  else
    free_block(segment_, candidate.index);
  return bytes;
}

// `exclusive`: nobody changes the block while we read it.
u64 Consumer::take_records(const Candidate& candidate, bool exclusive) {
  Thread* thread = candidate.nobody ? nullptr : find(candidate.slot, candidate.incarnation);
  if (!thread || candidate.sequence < thread->next_sequence) {
    bad_blocks_ += exclusive && candidate.committed;
    return 0;
  }
  Partial& partial = partials_[candidate.index];
  const u64 key = key_of(candidate.slot, candidate.incarnation);
  if (partial.key != key || partial.sequence != candidate.sequence) partial = {key, candidate.sequence, 0};
  if (candidate.committed < partial.bytes || !copy_block(candidate, partial.bytes, exclusive)) return 0;
  if (!partial.bytes) skip_to(*thread, candidate.first_record);
  if (thread->resumed && !partial.bytes) skip_had(*thread, candidate, partial);
  thread->next_sequence = candidate.sequence + exclusive;
  return give(*thread, partial, candidate.committed - partial.bytes);
}

bool Consumer::owner_has_ended(const Candidate& candidate) const {
  return !candidate.nobody &&
         std::find(ended_.begin(), ended_.end(), key_of(candidate.slot, candidate.incarnation)) != ended_.end();
}

// Copies [from, committed) of the block; false: it changed hands meanwhile.
bool Consumer::copy_block(const Candidate& candidate, u32 from, bool exclusive) {
  const BlockHeader& block = segment_.block(candidate.index);
  std::memcpy(buffer_.data(), segment_.records(candidate.index) + from, candidate.committed - from);
  GT_FAULT_POINT("records copied");
  if (exclusive) return true;
  std::atomic_thread_fence(std::memory_order_acquire);
  const u64 word = segment_.state(candidate.index).load(std::memory_order_acquire);
  return (word == candidate.word || word == next_block_word(candidate.word, BlockState::Full)) &&
         block.committed.load(std::memory_order_relaxed) >= candidate.committed && peek(block.slot) == candidate.slot &&
         peek(block.incarnation) == candidate.incarnation && peek(block.sequence) == candidate.sequence &&
         peek(block.first_record) == candidate.first_record;
}

// A block begins with a later record than the one that was to come: those in between are gone.
void Consumer::skip_to(Thread& thread, u64 first_record) {
  if (first_record <= thread.next_record) return;  // equal; or nonsense, then ours stands
  if (first_record >= kSane) {
    ++bad_blocks_;
    return;
  }
  const bool overwrites = segment_.header().on_full == OnFull::Overwrite;
  thread.info.dropped[overwrites ? kOverwritten : kLost] += first_record - thread.next_record;
  thread.next_record = first_record;
}

// The first of our own records of this thread may lie in the middle of a block: what is before it was had by another one.
void Consumer::skip_had(const Thread& thread, const Candidate& candidate, Partial& partial) {
  const u32 have = candidate.committed - partial.bytes;
  u32 at = 0;
  for (u64 record = candidate.first_record; record < thread.next_record && have - at >= sizeof(RecordHeader);
       ++record) {
    u16 bytes;
    std::memcpy(&bytes, buffer_.data() + at + offsetof(RecordHeader, size), sizeof bytes);
    if (bytes < sizeof(RecordHeader) || bytes % 8 || bytes > have - at) break;
    at += bytes;
  }
  std::memmove(buffer_.data(), buffer_.data() + at, have - at);
  partial.bytes += at;
}

u64 Consumer::give(Thread& thread, Partial& partial, u32 bytes) {
  u32 count = 0;
  const u32 good = valid_prefix(buffer_.data(), bytes, count);
  if (good) {
    sink_.records(thread.info, thread.next_record, count, buffer_.data(), good);
    thread.next_record += count;
    thread.info.taken += count;
  }
  if (good != bytes) ++bad_blocks_;  // the next block's first record says how many were in the rest
  partial.bytes += bytes;
  return bytes;
}

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
