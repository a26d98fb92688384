// The consumer's side of the segment: drains what the threads of the traced process have committed.
//   · The other side may be broken or hostile: positions, sizes and names are copied before they are checked, and
//     checked before they are followed. Whatever it does, drain() ends, and never reads outside the mapping.
//   · A thread's records come in its order, each once, with their exact ordinals; what was overwritten in between is
//     counted.
//   · Writes only the words that segment.h gives to the consumer: block states, heartbeat, consumer_*, and Ended ->
//     Free.
//   · One thread. Memory is bounded by the slots and blocks of the segment.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "ringbuf/segment.h"
#include "ringbuf/segment_view.h"

namespace gputrace {

// A thread of the traced process, as far as the segment tells.
struct RingThread {
  u32 slot = 0, incarnation = 0;
  i32 tid = 0;  // 0: the definitions slot, or not known any more
  Ticks begin = 0, end = 0;
  char name[16] = {};
  // Counters. seen and producer_dropped are the producer's; the rest is ours.
  u64 seen = 0;
  u64 dropped[kDropReasons] = {};  // the producer's reasons; Overwritten and Lost are counted here
  u64 taken = 0;                   // records given to the sink
};

// Where the records go.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // A thread was seen for the first time; `key` names it until thread_ended().
  virtual void thread_began(const RingThread& thread) = 0;
  // Whole records; `data` is private memory and good during the call.
  virtual void records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) = 0;
  // Its last record was given, its counters are final: seen = taken + sum(dropped).
  virtual void thread_ended(const RingThread& thread) = 0;
};

class Consumer {
 public:
  Consumer(SegmentView segment, RecordSink& sink);

  // Becomes the one consumer of a segment. False: another one, which is alive, is. `self`: own pid.
  static bool acquire(const SegmentView& segment, i32 self);
  void release();  // consumer_state: gone

  // Takes everything committed so far; returns the bytes taken.
  u64 drain();
  // Where the segment outlives us: a block that was taken is kept (Reading) until free_held(), so that whoever comes after us
  // finds what we had not written. Before the first drain().
  void hold_blocks() { holds_ = true; }
  void free_held();
  double held() const;  // share of the blocks

  // Another one before us has had the first `next_record` records of this thread, `taken` of them stored: they are not given again.
  // Before the first drain().
  void expect(u32 slot, u32 incarnation, u64 next_record, u64 taken);
  // The producer is gone for good: takes what there is, whatever state it is in, and ends every thread.
  void drain_last();

  // Threads that have not ended, with their counters as of now.
  std::vector<RingThread> threads();
  // The process: threads alive and ended, threads without a slot, threads whose slots the producer itself took back.
  RingThread process();
  // Calls open now, innermost last, by slot.
  struct OpenCall {
    u32 slot, incarnation;
    i32 tid;
    u32 call;
    Ticks begin;
    u64 argument;
    u32 depth;
  };
  std::vector<OpenCall> open_calls() const;

  const SegmentView& segment() const { return segment_; }
  u64 bad_blocks() const { return bad_blocks_; }  // whose content made no sense
  double fill() const { return fill_; }           // share of the blocks in use at the last drain

 private:
  struct Thread {
    RingThread info;
    u64 next_record = 0;      // ordinal of the record that is to come
    u32 next_sequence = 0;    // of the block that is to come
    u32 newest = 0;           // highest sequence that a first scan has seen
    bool has_blocks = false;  // in the newest scan
    bool resumed = false;     // expect(): its first block may hold records that were had
  };
  struct Candidate {
    u32 index;
    u64 word;
    u32 slot, incarnation, sequence;
    u32 committed;
    u64 first_record;
    bool nobody;  // no thread that there can be, or one that has ended
  };
  // What has been taken of a block that is being written.
  struct Partial {
    u64 key = ~0ull;
    u32 sequence = 0;
    u32 bytes = 0;
  };

  u64 pass(bool last);
  void scan_slots();
  void scan_blocks(bool last);
  Candidate read_header(u32 index, u64 word) const;
  bool sort_candidates();
  void note_newest(const Candidate& candidate);
  void drop_uncertain();
  u64 take(const Candidate& candidate, bool last);
  u64 take_records(const Candidate& candidate, bool exclusive);
  bool owner_has_ended(const Candidate& candidate) const;
  bool copy_block(const Candidate& candidate, u32 from, bool exclusive);
  void skip_to(Thread& thread, u64 first_record);
  u64 give(Thread& thread, Partial& partial, u32 bytes);
  void skip_had(const Thread& thread, const Candidate& candidate, Partial& partial);
  void finish_ended();
  void finish_all();
  void read_counters(const ThreadSlot& slot, Thread& thread) const;
  void finish(Thread& thread, RingThread& sums);
  Thread* find(u32 slot, u32 incarnation);
  Thread* make(u32 slot, u32 incarnation);

  SegmentView segment_;
  RecordSink& sink_;
  std::unordered_map<u64, Thread> threads_;  // by slot and incarnation
  std::vector<u32> finished_;                // by slot: newest incarnation that has ended, plus 1
  std::vector<Partial> partials_;            // by block
  std::vector<Candidate> candidates_;
  std::vector<u64> ended_;  // keys of slots that were Ended before the scan of the blocks
  std::vector<u8> buffer_;
  bool changed_hands_ = false;  // the candidate of take(): its block is another one's by now
  bool holds_ = false;
  std::vector<u32> held_;  // blocks that are Reading and have been taken
  struct Expected {
    u64 next_record, taken;
  };
  std::unordered_map<u64, Expected> expected_;
  RingThread ended_sum_;    // threads that ended
  RingThread retired_sum_;  // threads whose slots the producer took back: what we have of them
  u64 bad_blocks_ = 0;
  double fill_ = 0;
};

}  // namespace gputrace
