// The segment: the one piece of memory that the traced process and the sidecar share.
//
//   offset 0             SegmentHeader    written by the producer before the sidecar starts, constant from then on
//   control_offset       SegmentControl   shared words; each says who writes it
//   text_offset          schema text, then the process info text ("key\tvalue\n" lines); constant
//   slots_offset         ThreadSlot[slot_count]      one per live thread; slot 0 is the definitions slot (see below)
//   block_states_offset  atomic u64[block_count]     see BlockState
//   blocks_offset        Block[block_count]          BlockHeader, then records
//   host_table_offset    ringbuf/host_table.h, where `io` or `waits` are collected
//
//   · A memfd, sealed against shrinking and growing, or a file; reserved and pre-faulted before it is used. Never grown.
//   · A thread's ring is a chain of blocks. It claims a free block at its first record, commits records into it, and at
//     its end hands it over (Full) and claims the next. The consumer reads Full blocks and the committed part of
//     Writing ones, and frees Full ones.
//   · A record is either wholly visible or not at all: it is visible when BlockHeader::committed covers it.
//   · Nobody ever waits: no free block means drop and count, or (kOverwrite) take the oldest Full block that is not
//     being read.
//   · Nothing is locked. Block states change by one compare-and-swap, at block borders only.
//   · Slot 0 is written by whichever thread holds the producer's in-process definition lock; it carries definitions
//     (Text, *Facts, FunctionGet, ModuleLoad, Note ...), is never overwritten, and kReservedBlocks blocks may be
//     claimed for it alone.
//   · The last slot, and the kPatientBlocks blocks after those, are for the one thread of ours that waits for room (device
//     records): however many threads of the program hold slots and blocks, what it brings gets through.
//   · The consumer assumes that the producer's process is broken or hostile: it copies positions before it checks them,
//     and checks every size before it follows it. The consumer writes only the words marked "consumer".
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

inline constexpr u64 kSegmentMagic = 0x3167657365636172ull;
inline constexpr u32 kSegmentVersion = 6;  // the sidecar refuses another one
inline constexpr u32 kNoBlock = 0xffffffffu;
inline constexpr u32 kReservedBlocks = 4;  // the first blocks go to slot 0 only
inline constexpr u32 kPatientBlocks = 2;   // the next ones to the thread that waits: one fills, one is drained
inline constexpr u32 kFirstSharedBlock = kReservedBlocks + kPatientBlocks;
inline constexpr u32 kInFlightDepth = 6;  // deeper nesting is recorded, but not shown in flight
inline constexpr u32 kMinSlots = 64, kMaxSlots = 4096;

enum class OnFull : u32 { Drop = 0, Overwrite = 1 };

struct SegmentHeader {
  u64 magic;
  u32 version;
  u32 header_size;
  u64 segment_size;
  u64 control_offset;
  u64 text_offset;
  u64 schema_size;  // bytes of the schema text at text_offset
  u64 info_size;    // bytes of the info text that follows it
  u64 slots_offset;
  u64 block_states_offset;
  u64 blocks_offset;
  u64 host_table_offset;  // 64-byte aligned
  u64 host_table_size;    // 0: there is none
  u32 slot_count;
  u32 slot_size;  // sizeof(ThreadSlot) of the writer
  u32 block_count;
  u32 block_size;  // header included; a multiple of 4096
  // Identity: with the boot id, which the sidecar adds, it names this process and no other.
  u64 random_id;
  u64 pid_namespace;  // inode of /proc/self/ns/pid; 0: not known
  u64 start_time;     // field 22 of /proc/self/stat, clock ticks after boot; 0: not known
  i32 pid;            // as the process sees itself
  ClockKind clock;
  OnFull on_full;
  u32 reserved;
  Anchor anchor;  // taken when the segment was made
};

// Why recording stands as it does. Producer's state word.
enum class SessionState : u32 {
  Starting = 0,
  Recording = 1,
  Waiting = 2,  // outside the window: before GPUTRACE_DELAY, or the capture range has not begun
  Ended = 3,    // window over; the application goes on
};

// What becomes of what is drained. The consumer's state word.
enum class ConsumerState : u32 {
  None = 0,
  Draining = 1,
  NotWriting = 2,  // the file could not be made, or takes no more: what follows is counted alone
  Gone = 3,
};

struct alignas(64) SegmentControl {
  // Producer; every call reads them: it is recorded if window_begin <= its begin < window_end.
  std::atomic<u64> window_begin;  // ticks; 0: from the start; ~0: not yet (profiler-api, nvtx)
  std::atomic<u64> window_end;    // ticks; ~0: no end
  u8 pad0[48];
  // Producer (any of its threads).
  alignas(64) std::atomic<u32> state;  // SessionState
  u32 reserved;
  std::atomic<u64> first_call;    // ticks of the first CUDA call; 0: none yet
  std::atomic<u64> unslotted;     // records seen by threads that found no slot (all dropped: NoSlot)
  std::atomic<u64> retired_seen;  // sums over threads whose slots were reclaimed while nobody drained
  std::atomic<u64> retired_dropped[kDropReasons];
  std::atomic<u32> exiting;  // 1: exit handlers run (a hint; nothing depends on it)
  // Where CPython's `_PyRuntime` lies, and how large it is; 0: not known. Hints like those of ThreadSlot.
  std::atomic<u64> python_runtime;
  std::atomic<u64> python_runtime_bytes;
  // Consumer.
  alignas(64) std::atomic<u64> heartbeat;  // CLOCK_MONOTONIC ns of the last drain; 0: no consumer yet
  std::atomic<i32> consumer_pid;           // as the consumer sees itself; 0: none
  std::atomic<u32> consumer_state;         // ConsumerState
  // Path of the trace that it has begun, absolute; empty: none, or it is longer. Whoever recovers a ring looks there, and believes nothing.
  char trace[1024];
};

enum class SlotState : u32 {
  Free = 0,
  Live = 1,
  Ended = 2,    // its thread has ended: the consumer drains it, writes its counters and frees it
  Claimed = 3,  // taken, and not described yet: its words are those of its last thread
};

// A call that has begun and not ended. `begin` is stored last when it opens and cleared first when it closes.
struct InFlightCall {
  std::atomic<u64> begin;  // 0: empty
  u64 argument;            // the main argument (function, stream, address)
  u32 call;                // id of the call
  u32 reserved;
};

struct alignas(64) ThreadSlot {
  // Producer's own line: the owning thread only.
  u64 seen;                   // records this thread wanted to write
  u64 dropped[kDropReasons];  // by DropReason; seen - sum(dropped) were committed
  u32 depth;                  // calls in flight now, may exceed kInFlightDepth
  u32 next_sequence;          // sequence of the next block of this slot
  alignas(64)
      std::atomic<u32> state;  // SlotState; Free -> Claimed -> Live -> Ended by the producer, -> Free by the consumer
  u32 incarnation;             // counted up each time the slot is taken: (slot, incarnation) names a thread
  i32 tid;                     // kernel thread id as the process sees it
  std::atomic<u32> current_block;  // index, or kNoBlock
  char name[16];                   // thread name when the slot was taken
  u64 begin;                       // ticks when the slot was taken
  u64 end;                         // ticks when the thread ended; 0
  // Where the interpreter keeps what this thread does (CPython's PyThreadState), and pthread_self() as it must stand there: for
  // the sidecar, which looks from outside. 0: not known. Hints: whoever follows them believes nothing that lies there.
  std::atomic<u64> python_thread;
  u64 python_thread_id;
  InFlightCall in_flight[kInFlightDepth];
};
static_assert(sizeof(ThreadSlot) % 64 == 0);

// A block's state word: state in the low byte, the rest counts changes up (no ABA).
enum class BlockState : u64 { Free = 0, Writing = 1, Full = 2, Reading = 3, Claimed = 4 };
inline constexpr BlockState block_state(u64 word) { return static_cast<BlockState>(word & 0xff); }
inline constexpr u64 next_block_word(u64 word, BlockState state) {
  return (((word >> 8) + 1) << 8) | static_cast<u64>(state);
}
//   Free -> Claimed     producer, takes it and writes whose it is. Nobody else touches a claimed block: until it is Writing
//                       its words are its last owner's, whose thread may have ended since
//   Claimed -> Writing  producer, once it is named and empty
//   Writing -> Full     producer, hands over
//   Full -> Reading     consumer     Reading -> Free     consumer
//   Full -> Claimed     producer, overwrite mode only

struct alignas(64) BlockHeader {
  // Bytes of whole records after this header. Producer, release; pairs with the consumer's acquire.
  std::atomic<u32> committed;
  u32 slot;          // whose
  u32 incarnation;   // which thread of that slot
  u32 sequence;      // 0, 1, 2 ... within (slot, incarnation)
  u64 first_record;  // how many records (slot, incarnation) committed before this block
  u64 claimed;       // ticks
  u8 pad[32];
};
static_assert(sizeof(BlockHeader) == 64);

}  // namespace gputrace
