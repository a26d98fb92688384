#include "ringbuf/consumer.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fault.h"
#include "ringbuf/consumer_words.h"
#include "trace/record.h"

namespace gputrace {
namespace {

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
  u64 left =
      ~0ull;  // a thread whose next block changed hands since the scan: its later ones wait for the next pass too
  for (const Candidate& candidate : candidates_) {
    const u64 key = key_of(candidate.slot, candidate.incarnation);
    if (!candidate.nobody && key == left) continue;
    changed_hands_ = false;
    bytes += take(candidate, last);
    if (changed_hands_) left = key;
  }
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
  if (!segment_.state(candidate.index).compare_exchange_strong(word, reading, std::memory_order_acq_rel)) {
    changed_hands_ = true;
    return 0;
  }
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
  if (candidate.committed < partial.bytes || !copy_block(candidate, partial.bytes, exclusive)) {
    changed_hands_ = true;
    return 0;
  }
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

}  // namespace gputrace
