// The buffers that CUPTI writes activity records into: a bounded number of bytes, lent to CUPTI and queued when it gives
// them back.
//
//   · CUPTI has a buffer for each thread of the program (for all together before 12.3), and gives none back in which one
//     record waits for the end of its operation. So they begin small, that many threads find one and little is withheld
//     where launches are rare; where buffers fill fast the next ones are larger.
//   · request() and complete() run on whatever thread CUPTI likes, the application's included: no lock, no wait; one
//     mmap at most, and one for several of the smallest: those are what thousands of threads ask for.
//   · take() and give_back() are called by the collector's thread alone.
//   · A buffer that CUPTI holds is never unmapped, and never lent twice.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/types.h"

namespace gputrace {

class ActivityBuffers {
 public:
  static constexpr u32 kMost = 4096;
  static constexpr u64 kLargest = 1u << 20, kFirst = 16u << 10, kSmallest = 8u << 10;
  static constexpr u32 kAtOnce = 8;  // of the smallest, with one mmap
  // One that fills faster is followed by a larger one, one that takes longer to come back by a smaller one.
  static constexpr Nanos kFast = 10'000'000, kSlow = 80'000'000;

  struct Completed {
    u8* data = nullptr;  // nullptr: none
    u64 valid = 0;
    u32 era = 0;  // another one than era(): CUPTI was finalized since, and nothing in it may be looked at
  };

  // budget: bytes in all. Before the first request, or after every buffer has come back.
  void configure(u64 budget);
  // nullptr: none is free and no more may be made; counted.
  u8* request(u64& size, Nanos now = monotonic_nanos());
  // False: not one of ours.
  bool complete(u8* data, u64 valid, Nanos now = monotonic_nanos());
  // The one that was completed first.
  Completed take();
  void give_back(u8* data);  // zeroed again by the caller as far as it was written
  bool owns(const u8* data) const;
  u64 take_refused() { return refused_.exchange(0, std::memory_order_relaxed); }
  // CUPTI is about to be finalized.
  void begin_era() { era_.fetch_add(1, std::memory_order_acq_rel); }
  u32 era() const { return era_.load(std::memory_order_acquire); }
  // Completed and not given back yet.
  u32 unread() const { return unread_.load(std::memory_order_acquire); }
  u32 held() const { return held_.load(std::memory_order_relaxed); }  // lent to CUPTI now

 private:
  enum State : u32 { kAbsent, kFree, kLent, kCompleted, kReading };
  struct Buffer {
    std::atomic<u32> state;
    u32 next;  // number of the one that was completed before it; 0: none. The queue's
    std::atomic<u8*> data;
    u64 size;       // constant from kFree on
    u64 valid;      // written before kCompleted
    Nanos lent_at;  // written before CUPTI has it
    u32 era;        // written before kCompleted
  };
  static constexpr u32 kHomes = 2 * kMost;  // never more than half of them taken
  static u32 home_of(const u8* data);
  u32 find(const u8* data) const;  // its index; kMost: it is none of these
  void settle(u32 index, u8* data, u64 size, State state);
  Buffer* take_free(u64 size);  // any size: 0
  Buffer* make(u64 size, u32 count = 1);
  u8* lend(Buffer& buffer, u64& size, Nanos now);
  void judge(const Buffer& buffer, Nanos now);

  Buffer buffers_[kMost]{};
  std::atomic<u16>
      homes_[kHomes]{};            // number (index + 1) of the buffer by its address, open addressing; never taken out
  std::atomic<u32> made_{0};       // entries below it may be in use
  std::atomic<u64> bytes_{0};      // of all that were made
  std::atomic<u64> size_{kFirst};  // of the next one
  std::atomic<u32> completed_{0};  // number (index + 1) of the one that was completed last
  std::atomic<u32> held_{0};
  std::atomic<u32> free_{0};     // at least as many as there are: raised before one is free, lowered after it is taken
  std::atomic<u32> look_at_{0};  // where a free one is looked for first
  std::atomic<u32> unread_{0}, era_{0};
  std::atomic<u64> refused_{0};
  u32 queue_ = 0;  // the collector's: completed ones in their order, by `next`
  u64 budget_ = 8 * kLargest;
};

}  // namespace gputrace
