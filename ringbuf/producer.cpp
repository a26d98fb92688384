#include "ringbuf/producer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "base/fault.h"
#include "base/raw_syscall.h"

namespace gputrace {

constinit Gate gate{};
constinit Producer producer{};
constinit thread_local ThreadState thread_state{};

namespace {

BlockHeader* block_at(u32 index) {
  return reinterpret_cast<BlockHeader*>(producer.blocks + u64{index} * producer.block_size);
}
u32 index_of(const BlockHeader* block) {
  return static_cast<u32>((reinterpret_cast<const char*>(block) - producer.blocks) / producer.block_size);
}
u32 index_of(const ThreadSlot* slot) { return static_cast<u32>(slot - producer.slots); }
bool is_sink(const ThreadSlot* slot) { return slot == &producer.sink; }
bool is_patient(const ThreadSlot* slot) { return slot == producer.slots + producer.slot_count - 1; }
#if defined(GT_FAULT_POINTS)
i32 own_tid() { return fault_thread; }
long own_process() { return 0; }
bool thread_is_gone(long, i32 tid) { return fault_gone(tid); }
#else
i32 own_tid() { return static_cast<i32>(raw_syscall(SYS_gettid)); }
// Asked for anew by each search: in a child that was made behind our back a remembered one would take its living threads for dead.
long own_process() { return raw_syscall(SYS_getpid); }
bool thread_is_gone(long process, i32 tid) { return raw_syscall(SYS_tgkill, process, tid, 0) == -3 /* ESRCH */; }
#endif

u64 dropped_total(const ThreadSlot& slot) {
  u64 sum = 0;
  for (const u64 dropped : slot.dropped) sum += dropped;
  return sum;
}

bool change_block(u32 index, u64 word, BlockState state) {
  return producer.block_states[index].compare_exchange_strong(word, next_block_word(word, state),
                                                              std::memory_order_acq_rel, std::memory_order_relaxed);
}

// Where the blocks begin that this slot may take: the first ones are kept for those that must get through.
u32 first_block_of(const ThreadSlot* slot) {
  if (slot == producer.slots) return 0;
  return is_patient(slot) ? kReservedBlocks : kFirstSharedBlock;
}

// Every eighth search begins at the bottom again: while the sidecar keeps up, the same few blocks go round and stay in the
// cache.
u32 claim_free_block(const ThreadSlot* slot) {
  const u32 first = first_block_of(slot);
  if (first >= producer.block_count) return kNoBlock;
  const u32 span = producer.block_count - first;
  const bool is_kept_for = first != kFirstSharedBlock;
  const bool from_bottom = is_kept_for || producer.claims.fetch_add(1, std::memory_order_relaxed) % 8 == 0;
  const u32 start = from_bottom ? 0 : producer.next_block.load(std::memory_order_relaxed) % span;
  for (u32 i = 0; i < span; ++i) {
    const u32 index = first + (start + i) % span;
    const u64 word = producer.block_states[index].load(std::memory_order_relaxed);
    if (block_state(word) != BlockState::Free) continue;
    GT_FAULT_POINT("free block seen");
    if (!change_block(index, word, BlockState::Claimed)) continue;
    if (!is_kept_for) producer.next_block.store(index - first + 1, std::memory_order_relaxed);
    return index;
  }
  return kNoBlock;
}

// Flight recorder: the oldest full block that nobody reads gives way. Definitions never do.
u32 claim_oldest_full_block() {
  for (int attempt = 0; attempt < 4; ++attempt) {
    u32 oldest = kNoBlock;
    u64 oldest_word = 0;
    u64 oldest_claimed = ~0ull;
    for (u32 index = kReservedBlocks; index < producer.block_count; ++index) {
      const u64 word = producer.block_states[index].load(std::memory_order_acquire);
      BlockHeader& block = *block_at(index);
      // Another thread may take the block and write these meanwhile: then the word below has changed.
      const u64 claimed = std::atomic_ref(block.claimed).load(std::memory_order_relaxed);
      const u32 slot = std::atomic_ref(block.slot).load(std::memory_order_relaxed);
      if (block_state(word) != BlockState::Full || slot == 0 || claimed >= oldest_claimed) continue;
      oldest = index;
      oldest_word = word;
      oldest_claimed = claimed;
    }
    if (oldest == kNoBlock) return kNoBlock;
    GT_FAULT_POINT("oldest block chosen");
    if (change_block(oldest, oldest_word, BlockState::Claimed)) return oldest;
  }
  return kNoBlock;
}

void hand_over(ThreadState& thread) {
  if (!thread.block) return;
  const u32 index = index_of(thread.block);
  const u64 word = producer.block_states[index].load(std::memory_order_relaxed);
  // Only the owner takes a block out of Writing: this cannot fail unless the other side is broken. The state
  // changes first: in the other order a process killed in between would leave the block to nobody.
  GT_FAULT_POINT("block is full");
  if (block_state(word) == BlockState::Writing) change_block(index, word, BlockState::Full);
  GT_FAULT_POINT("block handed over");
  thread.slot->current_block.store(kNoBlock, std::memory_order_release);
  thread.block = nullptr;
  thread.cursor = thread.limit = nullptr;
}

void search_for_the_dead(Ticks now);

// With more threads than slots every call of those without one searches: a search that failed holds for a millisecond. The system is
// asked for the dead by one thread at a time, for a few, and not again for a tenth of a second after it has answered: where a system
// call takes long (under a tracer of system calls, in a sandbox that answers them itself) they would else be asked for without end.
constexpr u64 kSlotSearch = 50, kDeathSearch = 5000, kLongestDeathSearch = 250'000;  // in retry_ticks
constexpr u32 kDeathLooks = 64;

bool take_block(ThreadState& thread, Ticks now) {
  ThreadSlot& slot = *thread.slot;
  u32 index = claim_free_block(&slot);
  if (index == kNoBlock && producer.header->on_full == OnFull::Overwrite && &slot != producer.slots)
    index = claim_oldest_full_block();
  if (index == kNoBlock) {  // some may be held by threads that are no more
    search_for_the_dead(now);
    return false;
  }
  BlockHeader* block = block_at(index);
  GT_FAULT_POINT("block claimed");
  block->committed.store(0, std::memory_order_relaxed);
  GT_FAULT_POINT("block emptied");
  // Pairs with the acquire fence in Consumer::read_header(): a consumer that looks while the block changes hands (it saw it Full, or
  // Writing, before) and reads one of the new owner's words below sees this 0, or what the new owner has committed since.
  std::atomic_thread_fence(std::memory_order_release);
  std::atomic_ref(block->slot).store(index_of(&slot), std::memory_order_relaxed);
  GT_FAULT_POINT("block: slot");
  std::atomic_ref(block->incarnation).store(slot.incarnation, std::memory_order_relaxed);
  GT_FAULT_POINT("block: incarnation");
  std::atomic_ref(block->sequence).store(slot.next_sequence++, std::memory_order_relaxed);
  GT_FAULT_POINT("block: sequence");
  // The record that asks for room is counted as seen already.
  std::atomic_ref(block->first_record).store(slot.seen - dropped_total(slot) - 1, std::memory_order_relaxed);
  std::atomic_ref(block->claimed).store(now, std::memory_order_relaxed);
  GT_FAULT_POINT("block named");
  // Pairs with the acquire in Consumer::scan_blocks(): whoever sees it Writing reads the words above, and none of its last owner's.
  const u64 claimed = producer.block_states[index].load(std::memory_order_relaxed);
  producer.block_states[index].store(next_block_word(claimed, BlockState::Writing), std::memory_order_release);
  GT_FAULT_POINT("block is writing");
  slot.current_block.store(index, std::memory_order_release);
  GT_FAULT_POINT("block is current");
  thread.block = block;
  thread.cursor = reinterpret_cast<char*>(block + 1);
  thread.limit = reinterpret_cast<char*>(block) + producer.block_size;
  return true;
}

// Ring full is only ring full while somebody drains.
DropReason full_reason(Ticks now) {
  const SegmentControl& control = *producer.control;
  const u32 state = control.consumer_state.load(std::memory_order_relaxed);
  if (state == static_cast<u32>(ConsumerState::Gone)) return DropReason::NoSidecar;
  const u64 beat = control.heartbeat.load(std::memory_order_relaxed);
  if (beat == 0)
    return producer.stale_ticks && now - producer.session_begin < producer.stale_ticks ? DropReason::RingFull
                                                                                       : DropReason::NoSidecar;
  return static_cast<u64>(monotonic_nanos()) > beat + 2'000'000'000ull ? DropReason::NoSidecar : DropReason::RingFull;
}

void count_drop(ThreadSlot& slot, SlotLedger& ledger, Ticks now) {
  signal_safe_add(slot.dropped[ledger.gap_reason], 1);
  if (ledger.gap_count++ == 0) ledger.gap_begin = now;
  ledger.gap_end = now;
}

// The drops of this thread become a Gap as soon as there is room for one. The caller has just taken a fresh block.
void write_gap(ThreadState& thread, SlotLedger& ledger) {
  Gap gap{};
  gap.header = {static_cast<u16>(RecordType::Gap), sizeof(Gap), 0, 0, ledger.gap_begin, ledger.gap_end};
  gap.count = ledger.gap_count;
  gap.reason = ledger.gap_reason;
  ledger.gap_count = 0;
  signal_safe_add(thread.slot->seen, 1);
  std::memcpy(thread.cursor, &gap, sizeof gap);
  GT_FAULT_POINT("gap written");
  thread.cursor += sizeof gap;
  thread.block->committed.store(sizeof gap, std::memory_order_release);
}

void end_slot(ThreadSlot& slot, Ticks now) {
  slot.end = now;
  GT_FAULT_POINT("slot: end");
  slot.state.store(static_cast<u32>(SlotState::Ended), std::memory_order_release);  // pairs with the consumer's acquire
}

// Ends the slot of a thread that is no more. Nobody tells us of a thread's end; its number may be another thread's by now, and then it
// is `self` who asks. False: it is not dead, or has no thread.
bool end_slot_if_dead(u32 index, i32 self, long process, Ticks now) {
  ThreadSlot& slot = producer.slots[index];
  if (slot.state.load(std::memory_order_acquire) != static_cast<u32>(SlotState::Live)) return false;
  // The thread that waits holds its slot under another state than thread_state: it is alive when it asks.
  if (slot.tid == self ? is_patient(&slot) : !thread_is_gone(process, slot.tid)) return false;
  u32 live = static_cast<u32>(SlotState::Live);
  GT_FAULT_POINT("dead thread found");
  const u32 block = slot.current_block.exchange(kNoBlock, std::memory_order_acq_rel);
  if (block < producer.block_count) {
    const u64 word = producer.block_states[block].load(std::memory_order_relaxed);
    if (block_state(word) == BlockState::Writing && block_at(block)->slot == index)
      change_block(block, word, BlockState::Full);
  }
  GT_FAULT_POINT("dead thread's block handed over");
  slot.end = now;
  slot.state.compare_exchange_strong(live, static_cast<u32>(SlotState::Ended), std::memory_order_acq_rel);
  return true;
}

// Looks at so many slots other than the asking thread's own, and at six more for each whose thread is found dead: where threads come and go, those that went are found
// as fast as others come, and where all stay it costs next to nothing.
void look_for_the_dead(i32 self, const ThreadSlot* own, u32 looks, Ticks now) {
  const long process = own_process();
  const u32 span = producer.slot_count - 1;
  for (u32 done = 0; done < looks && done < span; ++done) {
    const u32 index = 1 + producer.next_look.fetch_add(1, std::memory_order_relaxed) % span;
    if (producer.slots + index != own && end_slot_if_dead(index, self, process, now)) looks += 6;
  }
}

// One that does not come back (its thread is killed in it, in a way that ends no process) holds for some seconds.
void search_for_the_dead(Ticks now) {
  u64 due = producer.next_death_search.load(std::memory_order_relaxed);
  const u64 at_the_latest = now + kLongestDeathSearch * producer.retry_ticks;
  if (now < due || !producer.next_death_search.compare_exchange_strong(due, at_the_latest, std::memory_order_relaxed))
    return;
  look_for_the_dead(own_tid(), thread_state.slot, kDeathLooks, now);
  producer.next_death_search.store(record_ticks() + kDeathSearch * producer.retry_ticks, std::memory_order_relaxed);
}

// Nobody drains: a slot whose thread has ended would stay Ended for ever. Its counts move to the process's sums.
bool retire_ended_slot(ThreadSlot& slot) {
  u32 ended = static_cast<u32>(SlotState::Ended);
  if (full_reason(record_ticks()) != DropReason::NoSidecar) return false;
  if (!slot.state.compare_exchange_strong(ended, static_cast<u32>(SlotState::Claimed), std::memory_order_acq_rel))
    return false;
  producer.control->retired_seen.fetch_add(slot.seen, std::memory_order_relaxed);
  for (u32 i = 0; i < kDropReasons; ++i)
    producer.control->retired_dropped[i].fetch_add(slot.dropped[i], std::memory_order_relaxed);
  return true;
}

bool claim_if_free(ThreadSlot& slot) {
  u32 free = static_cast<u32>(SlotState::Free);
  return slot.state.load(std::memory_order_relaxed) == free &&
         slot.state.compare_exchange_strong(free, static_cast<u32>(SlotState::Claimed), std::memory_order_acq_rel);
}

// Neither slot 0, nor the last one.
ThreadSlot* claim_slot(Ticks now) {
  if (now < producer.next_slot_search.load(std::memory_order_relaxed)) return nullptr;
  const u32 span = producer.slot_count - 2;
  const u32 start = producer.next_slot.fetch_add(1, std::memory_order_relaxed) % span;
  for (u32 i = 0; i < span; ++i) {
    ThreadSlot& slot = producer.slots[1 + (start + i) % span];
    if (claim_if_free(slot)) return &slot;
  }
  search_for_the_dead(now);
  for (u32 i = 0; i < span; ++i) {
    ThreadSlot& slot = producer.slots[1 + (start + i) % span];
    if (slot.state.load(std::memory_order_acquire) == static_cast<u32>(SlotState::Ended) && retire_ended_slot(slot))
      return &slot;
  }
  producer.next_slot_search.store(now + kSlotSearch * producer.retry_ticks, std::memory_order_relaxed);
  return nullptr;
}

void open_slot(ThreadSlot& slot, i32 tid) {
  GT_FAULT_POINT("slot claimed");
  slot.seen = 0;
  for (u64& dropped : slot.dropped) dropped = 0;
  slot.depth = 0;
  slot.next_sequence = 0;
  slot.current_block.store(kNoBlock, std::memory_order_relaxed);
  slot.tid = tid;
  std::memset(slot.name, 0, sizeof slot.name);
  raw_syscall(SYS_prctl, PR_GET_NAME, raw_pointer(slot.name));
  slot.begin = record_ticks();
  slot.end = 0;
  slot.python_thread.store(0, std::memory_order_relaxed);
  for (InFlightCall& call : slot.in_flight) call.begin.store(0, std::memory_order_relaxed);
  producer.ledgers[index_of(&slot)] = {};
  // A reader that sees the new incarnation sees the new thread's words.
  std::atomic_thread_fence(std::memory_order_release);
  GT_FAULT_POINT("slot described");
  slot.incarnation++;
  GT_FAULT_POINT("slot numbered");
  slot.state.store(static_cast<u32>(SlotState::Live),
                   std::memory_order_release);  // pairs with the acquire of whoever looks at it
  GT_FAULT_POINT("slot open");
}

void open_definitions_slot() {
  ThreadSlot& slot = producer.slots[0];
  open_slot(slot, own_tid());
  std::memcpy(slot.name, "definitions", sizeof "definitions");
  producer.definitions = {};
  producer.definitions.slot = &slot;
}

}  // namespace

void adopt_segment(char* base, SlotLedger* ledgers) {
  auto* header = reinterpret_cast<SegmentHeader*>(base);
  producer.header = header;
  producer.control = reinterpret_cast<SegmentControl*>(base + header->control_offset);
  producer.slots = reinterpret_cast<ThreadSlot*>(base + header->slots_offset);
  producer.block_states = reinterpret_cast<std::atomic<u64>*>(base + header->block_states_offset);
  producer.blocks = base + header->blocks_offset;
  producer.slot_count = header->slot_count;
  producer.block_count = header->block_count;
  producer.block_size = header->block_size;
  producer.clock = header->clock;
  producer.ledgers = ledgers;
  producer.session_begin = record_ticks();
  // Rough on purpose (2.5 GHz for the TSC): they only pace retries and say how long a silent sidecar counts as present.
  producer.retry_ticks = header->clock == ClockKind::Tsc ? 50'000 : 20'000;
  producer.stale_ticks = header->clock == ClockKind::Tsc ? 5'000'000'000 : 2'000'000'000;
  producer.definition_lock.store(0, std::memory_order_relaxed);
  producer.next_slot.store(0, std::memory_order_relaxed);
  producer.next_slot_search.store(0, std::memory_order_relaxed);
  producer.next_death_search.store(0, std::memory_order_relaxed);
  producer.next_look.store(0, std::memory_order_relaxed);
  producer.next_block.store(0, std::memory_order_relaxed);
  producer.claims.store(0, std::memory_order_relaxed);
  open_definitions_slot();
}

static void join(u64 generation, ThreadSlot* kept) {
  ThreadState& thread = thread_state;
  thread.busy = kWriting;  // a signal handler in here drops
  compiler_barrier();
  thread.cursor = thread.limit = nullptr;
  thread.block = nullptr;
  thread.context = kUnknownContext;
  thread.frame = 0;
  const Ticks now = record_ticks();
  const i32 self = own_tid();
  look_for_the_dead(self, nullptr, 2, now);
  ThreadSlot* slot = kept && claim_if_free(*kept) ? kept : claim_slot(now);
  if (slot) open_slot(*slot, self);
  thread.slot = slot ? slot : &producer.sink;
  thread.generation = generation;
  compiler_barrier();
  thread.busy = 0;
  if (slot && producer.thread_joined) producer.thread_joined();
}

void join_session(u64 generation) { join(generation, nullptr); }
void join_session_patiently(u64 generation) { join(generation, producer.slots + producer.slot_count - 1); }

void leave_session() {
  ThreadState& thread = thread_state;
  if (thread.generation != gate_generation() || !thread.slot) return;  // another process's, or another session's
  ThreadSlot* slot = thread.slot;
  thread.generation = ~0ull;
  compiler_barrier();
  if (is_sink(slot)) return;
  hand_over(thread);
  thread.slot = nullptr;
  end_slot(*slot, record_ticks());
}

// A thread without a slot looks for one again now and then: slots come back as the sidecar drains those of ended
// threads.
static bool retry_slot(ThreadState& thread, Ticks now) {
  ThreadSlot* slot = claim_slot(now);
  if (!slot) return false;
  open_slot(*slot, own_tid());
  thread.slot = slot;
  signal_safe_add(slot->seen, 1);
  return true;
}

char* reserve_slow(ThreadState& thread, Ticks now) {
  if (is_sink(thread.slot) && !retry_slot(thread, now)) {
    producer.control->unslotted.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  ThreadSlot& slot = *thread.slot;
  SlotLedger& ledger = producer.ledgers[index_of(&slot)];
  hand_over(thread);
  if (now < ledger.next_try) {  // the pool was empty a moment ago: do not search it again for every record
    count_drop(slot, ledger, now);
    return nullptr;
  }
  if (!take_block(thread, now)) {
    ledger.next_try = now + producer.retry_ticks;
    ledger.gap_reason = static_cast<u32>(full_reason(now));
    count_drop(slot, ledger, now);
    return nullptr;
  }
  ledger.next_try = 0;
  if (ledger.gap_count) write_gap(thread, ledger);
  return thread.cursor;
}

bool room_for(const ThreadState& thread, u32 size) {
  if (thread.cursor && static_cast<u64>(thread.limit - thread.cursor) >= size) return true;
  if (is_sink(thread.slot) || producer.header->on_full == OnFull::Overwrite) return true;  // waiting would not help
  for (u32 index = first_block_of(thread.slot); index < producer.block_count; ++index) {
    if (block_state(producer.block_states[index].load(std::memory_order_relaxed)) == BlockState::Free) return true;
  }
  return false;
}

void end_dead_threads() {
  const i32 self = own_tid();
  const long process = own_process();
  const Ticks now = record_ticks();
  for (u32 i = 1; i < producer.slot_count; ++i)
    if (producer.slots + i != thread_state.slot) end_slot_if_dead(i, self, process, now);
}

void drop_nested() {
  ThreadSlot* slot = thread_state.slot;
  if (!slot) return;
  signal_safe_add(slot->seen, 1);
  signal_safe_add(slot->dropped[static_cast<u32>(DropReason::Nested)], 1);
}

// Whether the cursor points at a record of this size that was begun with this stamp. `busy` alone does not say so: a
// handler may come before the record is begun, when there may be no room at the cursor, or nothing.
static bool begun_at_cursor(const ThreadState& thread, u64 size, Ticks begin) {
  if (begin == 0 || static_cast<u64>(thread.limit - thread.cursor) < size) return false;
  return reinterpret_cast<const RecordHeader*>(thread.cursor)->begin == begin;
}

// A begun record is whole while its call is open, that is while the slot shows its stamp in flight.
static bool begun_in_flight(const ThreadState& thread, u64 size) {
  for (u32 depth = 0; depth < kBegunDepth; ++depth) {
    const Ticks begin = thread.slot->in_flight[depth].begin.load(std::memory_order_relaxed);
    if (begun_at_cursor(thread, size, begin)) return true;
  }
  return false;
}

bool set_begun_aside(ThreadState& thread) {
  if (!has_begun(thread)) return false;
  // One instruction: a handler before it has set the record aside itself, and left 0; one after it drops.
  const u64 size = __atomic_exchange_n(&thread.busy, kWriting, __ATOMIC_RELAXED);
  compiler_barrier();
  const bool begun = size != 0 && size <= kLargestBegun && begun_in_flight(thread, size);
  if (begun) std::memcpy(producer.ledgers[index_of(thread.slot)].set_aside, thread.cursor, size);
  compiler_barrier();
  thread.busy = begun ? 0 : size;
  return thread.busy == 0;
}

char* reserve_begun(ThreadState& thread, u32 size, Ticks begin, Ticks now) {
  if (thread.busy == size && begun_at_cursor(thread, size, begin)) {  // its call has ended: handlers drop
    thread.busy = kWriting;
    compiler_barrier();
    signal_safe_add(thread.slot->seen, 1);
    return thread.cursor;
  }
  if (is_sink(thread.slot)) return reserve(thread, size, now);
  const SlotLedger& ledger = producer.ledgers[index_of(thread.slot)];
  RecordHeader header;
  std::memcpy(&header, ledger.set_aside, sizeof header);
  if (header.begin != begin) {
    drop_nested();
    return nullptr;
  }
  char* at = reserve(thread, size, now);
  if (at) std::memcpy(at, ledger.set_aside, size);
  return at;
}

static bool spin_for_definitions(u32 self) {
  for (int spin = 0; spin < 2000; ++spin) {
    u32 free = 0;
    if (producer.definition_lock.compare_exchange_strong(free, self, std::memory_order_acquire,
                                                         std::memory_order_relaxed))
      return true;
    if (free == self) return false;
    if (spin == 1000 && thread_is_gone(own_process(), static_cast<i32>(free))) {
      if (producer.definition_lock.compare_exchange_strong(free, self, std::memory_order_acquire)) {
        producer.definitions.busy = 0;
        return true;
      }
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

bool begin_definition(u32 rests) {
  const u32 self = static_cast<u32>(own_tid());
  for (u32 rested = 0; !spin_for_definitions(self); ++rested) {
    const bool is_on_top_of_holder =
        producer.definition_lock.load(std::memory_order_relaxed) == self;  // a signal handler
    if (is_on_top_of_holder || rested == rests) return false;
    timespec pause{0, 100'000};
    raw_syscall(SYS_nanosleep, raw_pointer(&pause), 0);
  }
  return true;
}

void end_definition() { producer.definition_lock.store(0, std::memory_order_release); }

}  // namespace gputrace
