// A process's worth of producer, without the interposer: the real producer.h on a real segment, in this process.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <vector>

#include "ringbuf/consumer.h"
#include "ringbuf/producer.h"
#include "ringbuf/segment_create.h"

namespace gputrace::test {

// Makes a segment and points the producer's globals at it. One at a time in a process.
class ProducerProcess {
 public:
  ProducerProcess(Bytes budget, OnFull on_full, const std::string& info = "executable\t/bin/program\n") {
    SegmentRequest request;
    request.budget = budget;
    request.clock = detect_clock();
    request.on_full = on_full;
    request.schema = "record 1 Call 32 \"a call\"\n";
    request.schema_size = std::strlen(request.schema);
    request.info = info.data();
    request.info_size = info.size();
    request.random_id = 0x1234567890abcdef;
    request.pid = ::getpid();
    EXPECT_EQ(create_segment(request, created_), 0);
    ledgers_.assign(created_.header->slot_count, {});
    adopt_segment(created_.base, ledgers_.data());
    producer.retry_ticks = 1000;
    producer.stale_ticks = 0;
    gate.generation.store(++generation_ + kFirstGeneration);
  }
  ~ProducerProcess() {
    gate.generation.store(kGateOff);
    ::munmap(created_.base, created_.header->segment_size);
    ::close(created_.fd);
  }
  int fd() const { return created_.fd; }
  char* base() const { return created_.base; }
  SegmentHeader& header() const { return *created_.header; }

 private:
  CreatedSegment created_;
  std::vector<SlotLedger> ledgers_;
  static inline u64 generation_ = 0;
};

// One record of the calling thread. `number` should count up: the tests check it at the other end.
inline bool emit(u64 number) {
  ThreadState& thread = thread_state;
  const u64 generation = gate_generation();
  if (thread.generation != generation) join_session(generation);
  const Ticks now = record_ticks();
  char* at = reserve(thread, sizeof(Call), now);
  if (!at) return false;
  Call call{};
  call.header = {static_cast<u16>(RecordType::Call), sizeof call, 7, 0, now, now + 1};
  call.object = number;
  std::memcpy(at, &call, sizeof call);
  commit(thread, at, sizeof call, generation);
  return true;
}

// Checks what a consumer may promise: order, every record once, ordinals without a gap that is not counted.
class CheckingSink : public RecordSink {
 public:
  struct Seen {
    RingThread info;
    u64 calls = 0, gaps = 0, gap_count = 0, next_record = 0, skipped = 0, last_number = 0;
    std::vector<u64> numbers;
    bool ended = false;
  };
  void thread_began(const RingThread& thread) override {
    EXPECT_TRUE(threads.emplace(key(thread), Seen{}).second);
    threads[key(thread)].info = thread;
  }
  void records(const RingThread& thread, u64 first_record, u32 count, const u8* data, u32 size) override {
    Seen& seen = threads.at(key(thread));
    ASSERT_FALSE(seen.ended);
    ASSERT_GE(first_record, seen.next_record);
    seen.skipped += first_record - seen.next_record;
    seen.next_record = first_record + count;
    u32 found = 0;
    for (u32 at = 0; at < size; ++found) {
      RecordHeader header;
      std::memcpy(&header, data + at, sizeof header);
      if (header.type == static_cast<u16>(RecordType::Gap)) {
        Gap gap;
        std::memcpy(&gap, data + at, sizeof gap);
        ++seen.gaps;
        seen.gap_count += gap.count;
      } else {
        Call call;
        std::memcpy(&call, data + at, sizeof call);
        if (strict) {
          ASSERT_EQ(header.size, sizeof call);
          ASSERT_GT(call.object, seen.last_number);
        }
        seen.last_number = call.object;
        ++seen.calls;
      }
      at += header.size;
    }
    ASSERT_EQ(found, count);
  }
  void thread_ended(const RingThread& thread) override {
    Seen& seen = threads.at(key(thread));
    EXPECT_FALSE(seen.ended);
    seen.ended = true;
    seen.info = thread;
    u64 dropped = 0;
    for (u64 each : thread.dropped) dropped += each;
    EXPECT_EQ(thread.seen, thread.taken + dropped);
    EXPECT_EQ(thread.taken, seen.calls + seen.gaps);
    if (!strict) threads.erase(key(thread));
  }
  static u64 key(const RingThread& thread) { return static_cast<u64>(thread.slot) << 32 | thread.incarnation; }

  std::map<u64, Seen> threads;
  bool strict = true;
};

}  // namespace gputrace::test
