// The producer's side of the segment: what a thread of the traced process does to write a record.
//
//   · Only the owning thread writes into its slot and its block. Nothing here locks, allocates, throws or makes a
//     system call; what must (claiming a slot or a block) is in producer.cpp, out of line, at block borders and thread
//     borders only.
//   · The gate is one word in a page that fork wipes: a thread records while the generation that it joined equals the
//     gate's. A child of fork reads 0 there, a process in which tracing is off reads kGateOff; both leave the hot path.
//   · A signal handler may interrupt any instruction here and make a traced call itself. `busy` is up from reserve to
//     commit: what the handler wanted to write then is dropped and counted (Nested). Counters are bumped by one
//     instruction each.
//   · A record may be begun before its call is made (interpose/entry/launch_x86_64.S): it lies at the cursor, uncounted, and
//     `busy` holds its size. Whoever writes a record meanwhile (a callback, a signal handler) sets it aside first.
//   · A handler may also fork and return into the middle of a write: commit() looks at the gate again, so that the
//     child does not publish into its parent's ring.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/fault.h"
#include "base/types.h"
#include "ringbuf/segment.h"
#include "trace/record.h"

namespace gputrace {

inline constexpr u64 kGateIdle = 0;  // nothing yet in this process, or a child of fork
inline constexpr u64 kGateOff = 1;   // for good
inline constexpr u64 kFirstGeneration = 2;
inline constexpr u64 kUnknownContext = ~0ull;
// ThreadState::busy of a thread whose calls are not the program's: a thread of ours, or one that is inside CUPTI for
// us.
inline constexpr u64 kUntraced = 2;
// Between reserve and commit.
inline constexpr u64 kWriting = 1;
inline constexpr u32 kLargestBegun = 88;  // bytes of the largest record that is begun before its call
inline constexpr u32 kBegunDepth = 2;     // that call is one of the outermost so many in flight

// Whether calls of vendor libraries are recorded: decided when the session starts.
inline constexpr u64 kLibrariesUndecided = 0;
inline constexpr u64 kLibrariesOff = 1;
inline constexpr u64 kLibrariesOn = 2;

// Alone in a page with MADV_WIPEONFORK.
struct alignas(4096) Gate {
  std::atomic<u64> generation;
  std::atomic<u64> libraries;
  std::atomic<u64> launch;  // the generation, where the clock is the TSC: interpose/entry/launch_x86_64.S may be gone
  std::atomic<u64> stacks;  // the generation, where stacks are read; then `launch` stays 0
};

// All the thread-local storage that there is: 64 bytes, so that the library fits into the static TLS that glibc keeps
// spare.
struct ThreadState {
  u64 generation = ~0ull;  // session that this thread has joined; ~0: none
  char* cursor = nullptr;  // where the next record goes
  char* limit = nullptr;   // end of the block
  BlockHeader* block = nullptr;
  ThreadSlot* slot = nullptr;     // never null once joined: Producer::sink stands in when no slot was free
  u64 context = kUnknownContext;  // current CUcontext
  u64 frame = 0;                  // stack address of the innermost open call
  u64 busy = 0;                   // 0, kWriting, kUntraced, or the size of the record that is begun at the cursor
};
static_assert(sizeof(ThreadState) == 64);

// What the producer keeps of a slot outside the segment. Index: slot. The owning thread only.
struct SlotLedger {
  u64 gap_count;  // records dropped since the last one that was written
  Ticks gap_begin;
  Ticks gap_end;
  u32 gap_reason;
  u32 reserved;
  Ticks next_try;                 // no search for a free block before this
  char set_aside[kLargestBegun];  // the begun record that gave way to others during its call
};
static_assert(sizeof(SlotLedger) == 128);

// One process, one producer. Written while the session starts, constant while its generation is in the gate, unless
// said otherwise.
struct Producer {
  SegmentHeader* header;
  SegmentControl* control;
  ThreadSlot* slots;
  std::atomic<u64>* block_states;
  char* blocks;
  u32 slot_count;
  u32 block_count;
  u32 block_size;
  ClockKind clock;
  SlotLedger* ledgers;  // slot_count of them, private memory
  Ticks session_begin;
  Ticks retry_ticks;  // about 20 us
  Ticks stale_ticks;  // about 2 s: a consumer begins within them; 0: none is expected
  ThreadSlot
      sink;  // stands in for the slot of a thread that found none; its words are written by many and read by nobody
  ThreadState definitions;           // the writer state of slot 0, under definition_lock
  std::atomic<u32> definition_lock;  // 0, or the tid of the holder
  std::atomic<u32> next_slot;
  std::atomic<u64> next_slot_search;   // ticks: all slots were taken a moment ago
  std::atomic<u64> next_death_search;  // ticks: who has died was looked at a moment ago
  std::atomic<u32> next_look;          // slot whose thread is asked for next
  std::atomic<u32> next_block;
  std::atomic<u32> claims;
  // Called when a thread has taken a slot, so that its end can be noticed. Set by the session; may be null.
  void (*thread_joined)();
};

// Hidden: reached without the global offset table.
extern __attribute__((visibility("hidden"))) Gate gate asm("gputrace_gate");  // named for the assembler
extern __attribute__((visibility("hidden"))) Producer producer;
extern constinit thread_local ThreadState thread_state __attribute__((visibility("hidden"), tls_model("initial-exec")));

// One instruction where the architecture has it: a signal handler may do the same in between.
__attribute__((always_inline)) inline void signal_safe_add(u64& word, u64 amount) {
#if defined(__x86_64__)
  asm volatile("addq %1, %0" : "+m"(word) : "er"(amount) : "cc");
#else
  __atomic_fetch_add(&word, amount, __ATOMIC_RELAXED);
#endif
}
inline void compiler_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }
inline u64 gate_generation() { return gate.generation.load(std::memory_order_relaxed); }
inline Ticks record_ticks() { return ticks_of(producer.clock); }

// Cold, producer.cpp.
//
// Points the producer at a segment that has just been begun, everything of an earlier one forgotten, with slot 0 ready.
// `ledgers`: one for each slot, zeroed, the caller's. Before the gate opens; no other thread may be recording.
void adopt_segment(char* base, SlotLedger* ledgers);

// None of the following fails: the worst case is a record that is dropped and counted.
//
// Makes the calling thread a thread of the present session: takes a slot, or the sink.
void join_session(u64 generation);
// The same for the one thread of ours that waits for room: it gets the slot and the blocks that are kept for it.
void join_session_patiently(u64 generation);
// Hands the thread's block over and ends its slot. Later records of the thread join again.
void leave_session();
// Room in a fresh block when the present one is full or absent; nullptr: dropped and counted. No record is larger than
// a block.
char* reserve_slow(ThreadState& thread, Ticks now);
void drop_nested();
// For a thread whose `busy` is not 0. True: the record that was begun at the cursor is set aside, and the cursor is
// free. False: no record may be written now.
bool set_begun_aside(ThreadState& thread);
// Reserves a record that was begun with this stamp, wherever it is by now, with its content; nullptr: it is lost, and
// counted as Nested.
char* reserve_begun(ThreadState& thread, u32 size, Ticks begin, Ticks now);
// Whether a record of this size would find room just now, as far as one can know without taking it. For a thread of ours
// that may wait.
bool room_for(const ThreadState& thread, u32 size);
// Ends the slots of threads that are no more, so that what they hold is drained. A system call for each thread: for a
// thread of ours that waits.
void end_dead_threads();

// Reserves `size` bytes (a multiple of 8) for one record and counts it as seen. nullptr: it was dropped, and counted.
// Between a non-null return and commit() nothing else may be done than fill the bytes.
__attribute__((always_inline)) inline char* reserve(ThreadState& thread, u32 size, Ticks now) {
  if (thread.busy) [[unlikely]] {
    if (!set_begun_aside(thread)) {
      drop_nested();
      return nullptr;
    }
  }
  thread.busy = kWriting;
  compiler_barrier();
  signal_safe_add(thread.slot->seen, 1);
  char* at = thread.cursor;
  if (static_cast<u64>(thread.limit - at) < size) [[unlikely]] {
    at = reserve_slow(thread, now);
    if (!at) {
      compiler_barrier();
      thread.busy = 0;
      return nullptr;
    }
  }
  if (!at) __builtin_unreachable();  // spares the caller its second look
  return at;
}

// Whether a record lies at the cursor that was begun before its call.
inline bool has_begun(const ThreadState& thread) { return thread.busy >= sizeof(RecordHeader); }

// Publishes what was reserved, unless the process is no longer the one that reserved it.
__attribute__((always_inline)) inline void commit(ThreadState& thread, char* at, u32 size, u64 generation) {
  compiler_barrier();
  GT_FAULT_POINT("record written");
  if (gate_generation() == generation) [[likely]] {
    thread.cursor = at + size;
    const u32 committed = static_cast<u32>(at + size - reinterpret_cast<char*>(thread.block + 1));
    thread.block->committed.store(committed, std::memory_order_release);  // pairs with the consumer's acquire
    GT_FAULT_POINT("record committed");
  }
  compiler_barrier();
  thread.busy = 0;
}

// The definitions slot. begin_definition() takes the in-process lock, or gives up after a bounded wait (false: then
// nothing may be written now): some 40 us, as a launch may, and then as many rests of 0.1 ms as are allowed, for a
// holder that lost its processor. A signal handler that interrupted the holder gets false at once.
bool begin_definition(u32 rests = 0);
inline constexpr u32 kRestsForWhatIsSaidOnce = 200;  // 20 ms: a processor's slice, some times over
void end_definition();
// Under the lock. Same contract as reserve() and commit().
inline char* reserve_definition(u32 size, Ticks now) { return reserve(producer.definitions, size, now); }
inline void commit_definition(char* at, u32 size, u64 generation) {
  commit(producer.definitions, at, size, generation);
}

}  // namespace gputrace
