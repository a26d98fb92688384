// The buffers that CUPTI writes activity records into: a bounded number, lent to CUPTI and queued when it gives them
// back.
//
//   · request() and complete() run on whatever thread CUPTI likes, the application's included: no lock, no wait; one
//     mmap at most.
//   · take() and give_back() are called by the collector's thread alone.
//   · A buffer that CUPTI holds is never unmapped, and never lent twice.
#pragma once

#include <atomic>

#include "base/types.h"

namespace gputrace {

class ActivityBuffers {
 public:
  static constexpr u32 kMost = 32;
  static constexpr u64 kLargest = 1u << 20, kSmallest = 64u << 10;

  struct Completed {
    u8* data = nullptr;  // nullptr: none
    u64 valid = 0;
  };

  // budget: bytes in all. Before the first request, or after every buffer has come back.
  void configure(u64 budget);
  // nullptr: none is free and no more may be made; counted.
  u8* request(u64& size);
  // False: not one of ours.
  bool complete(u8* data, u64 valid);
  // The one that was completed first.
  Completed take();
  void give_back(u8* data);  // zeroed again by the caller as far as it was written
  bool owns(const u8* data) const;
  u64 take_refused() { return refused_.exchange(0, std::memory_order_relaxed); }
  u64 size() const { return size_; }
  u32 held() const;  // lent to CUPTI now

 private:
  enum State : u32 { kAbsent = 0, kMaking = 1, kFree = 2, kLent = 3, kCompleted = 4, kReading = 5 };
  struct Buffer {
    std::atomic<u32> state;
    std::atomic<u8*> data;
    u64 valid;      // written before kCompleted
    u64 completed;  // order
  };
  Buffer* find(const u8* data);

  Buffer buffers_[kMost]{};
  std::atomic<u64> next_completed_{0};
  std::atomic<u64> refused_{0};
  u64 size_ = kLargest;
  u32 most_ = 8;
};

}  // namespace gputrace
