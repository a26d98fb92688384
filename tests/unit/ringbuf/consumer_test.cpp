// The ring from end to end: the real producer against the real consumer, in threads, in a process that is killed, and
// with a segment full of lies.
#include <signal.h>
#include <sys/wait.h>

#include <functional>
#include <random>
#include <thread>

#include "tests/unit/ringbuf/helpers.h"

namespace gputrace::test {
namespace {

constexpr u32 kOverwritten = static_cast<u32>(DropReason::Overwritten), kLost = static_cast<u32>(DropReason::Lost);

SegmentView view_of(const ProducerProcess& process) {
  auto view = SegmentView::map(process.fd());
  EXPECT_TRUE(view.ok()) << view.error();
  return view.value();
}

struct Totals {
  u64 emitted = 0, dropped = 0;
};

// `threads` threads emit `each` records; one more drains meanwhile, with a pause between two drains.
void run_against_consumer(OnFull on_full, Bytes budget, u32 threads, u64 each, u32 pause_us, CheckingSink& sink,
                          RingThread& process, u64& refused) {
  ProducerProcess producer_process(budget, on_full);
  Consumer consumer(view_of(producer_process), sink);
  std::atomic<u32> running{threads};
  std::atomic<u64> all_refused{0};
  std::vector<std::thread> workers;
  for (u32 t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      u64 lost = 0;
      for (u64 i = 1; i <= each; ++i) lost += !emit(i);
      all_refused += lost;
      leave_session();
      --running;
    });
  }
  while (running) {
    consumer.drain();
    if (pause_us) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
  for (std::thread& worker : workers) worker.join();
  consumer.drain();
  consumer.drain();
  u64 ended = 0;
  for (const auto& [key, seen] : sink.threads) ended += seen.ended;
  EXPECT_EQ(ended, threads) << "slots of threads that ended are freed after their counters are reported";
  consumer.drain_last();
  process = consumer.process();
  refused = all_refused;
  EXPECT_EQ(consumer.bad_blocks(), 0u);
  for (u32 i = 0; i < producer_process.header().block_count; ++i)
    EXPECT_EQ(block_state(producer.block_states[i].load()), BlockState::Free);
  for (u32 i = 1; i < producer_process.header().slot_count; ++i)
    EXPECT_EQ(producer.slots[i].state.load(), static_cast<u32>(SlotState::Free));
}

TEST(Consumer, TakesEverythingWhereThereIsRoom) {
  CheckingSink sink;
  RingThread process;
  u64 refused = 0;
  run_against_consumer(OnFull::Drop, 16 << 20, 4, 50'000, 200, sink, process, refused);
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(process.seen, 200'000u);
  EXPECT_EQ(process.taken, 200'000u);
  u64 threads = 0;
  for (const auto& [key, seen] : sink.threads) {
    if (!seen.info.slot) continue;
    ++threads;
    EXPECT_EQ(seen.calls, 50'000u);
    EXPECT_EQ(seen.last_number, 50'000u);
    EXPECT_EQ(seen.skipped, 0u);
    EXPECT_GT(seen.info.tid, 0);
    EXPECT_GT(seen.info.end, seen.info.begin);
  }
  EXPECT_EQ(threads, 4u);
}

TEST(Consumer, ConservesUnderDrop) {
  CheckingSink sink;
  RingThread process;
  u64 refused = 0;
  run_against_consumer(OnFull::Drop, kMinSegment, 3, 300'000, 3000, sink, process, refused);
  EXPECT_GT(refused, 1000u) << "this test is about a full ring";
  u64 gaps = 0, gap_count = 0, calls = 0;
  for (const auto& [key, seen] : sink.threads) {
    gaps += seen.gaps;
    gap_count += seen.gap_count;
    calls += seen.calls;
    EXPECT_EQ(seen.skipped, 0u);
    EXPECT_EQ(seen.info.dropped[kOverwritten], 0u);
    EXPECT_EQ(seen.info.dropped[kLost], 0u);
  }
  EXPECT_EQ(calls, 900'000u - refused);
  EXPECT_EQ(process.seen, 900'000u + gaps);
  EXPECT_EQ(process.dropped[0] + process.dropped[3], refused);
  EXPECT_LE(gap_count, refused);
  EXPECT_GT(gap_count, 0u);
}

TEST(Consumer, ConservesUnderOverwrite) {
  CheckingSink sink;
  RingThread process;
  u64 refused = 0;
  run_against_consumer(OnFull::Overwrite, kMinSegment, 3, 300'000, 3000, sink, process, refused);
  u64 skipped = 0;
  for (const auto& [key, seen] : sink.threads) {
    skipped += seen.skipped;
    EXPECT_EQ(seen.info.dropped[kLost], 0u);
    if (seen.info.slot) {
      EXPECT_GE(seen.info.seen, 300'000u + seen.gaps) << "a Gap may have been overwritten too";
    }
  }
  EXPECT_GT(process.dropped[kOverwritten], 1000u) << "this test is about an overwritten ring";
  EXPECT_EQ(process.taken + process.dropped[kOverwritten] + process.dropped[0] + process.dropped[3], process.seen);
  EXPECT_LE(skipped, process.dropped[kOverwritten]);
}

TEST(Consumer, ThreadsByTheThousandReuseSlots) {
  ProducerProcess producer_process(2 << 20, OnFull::Drop);
  CheckingSink sink;
  Consumer consumer(view_of(producer_process), sink);
  constexpr u32 kThreads = 2000;
  std::atomic<u64> refused{0};
  for (u32 batch = 0; batch < kThreads / 20; ++batch) {
    std::vector<std::thread> workers;
    for (u32 t = 0; t < 20; ++t) {
      workers.emplace_back([&] {
        for (u64 i = 1; i <= 10; ++i) refused += !emit(i);
        leave_session();
      });
    }
    for (std::thread& worker : workers) worker.join();
    consumer.drain();
  }
  consumer.drain();
  EXPECT_EQ(refused.load(), 0u);
  u64 calls = 0, threads = 0;
  for (const auto& [key, seen] : sink.threads) {
    calls += seen.calls;
    threads += seen.ended;
  }
  EXPECT_EQ(threads, kThreads);
  EXPECT_EQ(calls, kThreads * 10u);
  EXPECT_EQ(consumer.threads().size(), 1u) << "only the definitions are left";
}

TEST(Consumer, TakesTheCommittedPartOfAProcessKilledAtRandom) {
  std::mt19937_64 random(1);
  u64 total = 0;
  for (u32 round = 0; round < 60; ++round) {
    ProducerProcess producer_process(8 << 20, round % 2 ? OnFull::Drop : OnFull::Overwrite);
    const pid_t child = ::fork();
    if (child == 0) {
      std::thread other([] {
        for (u64 i = 1;; ++i) emit(i);
      });
      for (u64 i = 1;; ++i) emit(i);
    }
    CheckingSink sink;
    Consumer consumer(view_of(producer_process), sink);
    const auto until = monotonic_nanos() + static_cast<Nanos>(random() % 6'000'000);
    while (monotonic_nanos() < until) consumer.drain();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    consumer.drain_last();
    const RingThread process = consumer.process();
    u64 dropped = 0, threads = 0;
    for (u64 each : process.dropped) dropped += each;
    for (const auto& [key, seen] : sink.threads) {
      EXPECT_TRUE(seen.ended);
      threads += seen.info.slot != 0;
      EXPECT_LE(seen.info.dropped[kLost], 2u) << "at most the record that was being written, and a Gap before it";
    }
    EXPECT_EQ(process.seen, process.taken + dropped);
    EXPECT_LE(process.dropped[kLost], 2 * threads);
    total += process.taken;
  }
  EXPECT_GT(total, 10'000u);
}

// Calls back while the consumer is in the middle of its scan.
class MeddlingSink final : public CheckingSink {
 public:
  void thread_began(const RingThread& thread) override {
    CheckingSink::thread_began(thread);
    if (++began == 3) std::thread([] { emit(1); }).join();  // has a block, but no slot that this pass has seen
    if (began == 4) meddle();
  }
  u32 began = 0;  // slot 0, this thread, a second one; the fourth is found by its block
  std::function<void()> meddle;
};

// A block is scanned while it is being written; before the scan ends its thread fills it and goes on in a later one.
// The scan sees both: all of the first comes before any of the second, and nothing is lost.
TEST(Consumer, TakesAllOfABlockThatWasHandedOverDuringTheScan) {
  ProducerProcess producer_process(kMinSegment, OnFull::Drop);
  MeddlingSink sink;
  Consumer consumer(view_of(producer_process), sink);
  producer.claims.store(0);  // blocks are claimed upwards from here: the scan meets them in that order
  producer.next_block.store(0);
  u64 last = 0;
  ASSERT_TRUE(emit(++last));
  const u32 slot = static_cast<u32>(thread_state.slot - producer.slots);
  producer.next_slot.store(producer.slot_count -
                           3);  // the second thread takes the last slot of all, the third one before it
  std::thread([] { emit(1); }).join();
  sink.meddle = [&] {
    const BlockHeader* first = thread_state.block;
    while (thread_state.block == first) ASSERT_TRUE(emit(++last));
    ASSERT_GT(thread_state.block, first) << "the scan must still come to it";
  };
  consumer.drain();
  ASSERT_EQ(sink.began, 4u);
  ASSERT_GT(last, 2u);
  leave_session();
  consumer.drain();
  consumer.drain_last();
  u64 calls = 0;
  for (const auto& [key, seen] : sink.threads) {
    EXPECT_EQ(seen.info.dropped[kLost], 0u);
    EXPECT_EQ(seen.skipped, 0u);
    if (seen.info.slot == slot) calls += seen.calls;
  }
  EXPECT_EQ(calls, last);
}

TEST(Consumer, ASecondOneIsRefusedWhileTheFirstLives) {
  ProducerProcess producer_process(kMinSegment, OnFull::Drop);
  const SegmentView view = view_of(producer_process);
  ASSERT_TRUE(Consumer::acquire(view, ::getpid()));
  EXPECT_FALSE(Consumer::acquire(view, ::getpid() + 1));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  view.control().consumer_pid.store(child);
  EXPECT_TRUE(Consumer::acquire(view, ::getpid())) << "the holder is gone";
}

TEST(Consumer, ShowsCallsInFlight) {
  ProducerProcess producer_process(kMinSegment, OnFull::Drop);
  CheckingSink sink;
  Consumer consumer(view_of(producer_process), sink);
  emit(1);
  ThreadSlot& slot = *thread_state.slot;
  slot.depth = 3;
  slot.in_flight[0].call = 12;
  slot.in_flight[0].argument = 0xbeef;
  slot.in_flight[0].begin.store(777);
  slot.in_flight[2].call = 13;
  slot.in_flight[2].begin.store(888);
  const auto calls = consumer.open_calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].call, 12u);
  EXPECT_EQ(calls[0].argument, 0xbeefu);
  EXPECT_EQ(calls[0].begin, 777u);
  EXPECT_EQ(calls[1].depth, 2u);
  leave_session();
}

// The consumer must end, stay inside the mapping, and keep its books, whatever the words are.
TEST(Consumer, SurvivesHostileSegments) {
  ProducerProcess producer_process(kMinSegment, OnFull::Drop);
  const u64 size = producer_process.header().segment_size;
  const SegmentHeader header = producer_process.header();
  std::mt19937_64 random(5);
  for (u32 round = 0; round < 300; ++round) {
    CheckingSink sink;
    sink.strict = false;
    Consumer consumer(view_of(producer_process), sink);
    for (u32 pass = 0; pass < 5; ++pass) {
      u64* words = reinterpret_cast<u64*>(producer_process.base());
      for (u32 i = 0; i < 3000; ++i) {
        const u64 at = header.control_offset / 8 + random() % ((size - header.control_offset) / 8);
        const u64 value = random() >> (random() % 64);
        words[at] = random() % 3 ? value : value % 70;
      }
      for (u32 b = 0; b < header.block_count; ++b) {
        BlockHeader& block = *reinterpret_cast<BlockHeader*>(producer_process.base() + header.blocks_offset +
                                                             u64{b} * header.block_size);
        producer.block_states[b].store((random() % 1000) << 8 | random() % 5);
        if (random() % 2) block.committed = static_cast<u32>(random() % (2 * header.block_size));
        if (random() % 2) block.slot = static_cast<u32>(random() % (header.slot_count + 3));
        if (random() % 2) block.incarnation = static_cast<u32>(random() % 3);
        if (random() % 2) block.sequence = static_cast<u32>(random() % 6);
        if (random() % 2) block.first_record = random() % 10'000;
        RecordHeader record{1, static_cast<u16>(random() % 3 ? 32 : random()), 0, 0, 1, 2};
        std::memcpy(static_cast<void*>(&block + 1), &record, sizeof record);
      }
      consumer.drain();
      ASSERT_LE(consumer.threads().size(), header.slot_count + header.block_count);
      consumer.open_calls();
    }
    consumer.drain_last();
    const RingThread process = consumer.process();
    u64 dropped = 0;
    for (u64 each : process.dropped) dropped += each;
    ASSERT_EQ(process.seen, process.taken + dropped);
  }
}

TEST(SegmentView, RefusesHostileHeaders) {
  ProducerProcess producer_process(kMinSegment, OnFull::Drop);
  const SegmentHeader good = producer_process.header();
  std::vector<u64> memory(good.segment_size / 8 + 16);
  void* base = reinterpret_cast<void*>(align_up(reinterpret_cast<u64>(memory.data()), 64));
  std::memcpy(base, producer_process.base(), good.segment_size);
  auto* header = static_cast<SegmentHeader*>(base);
  ASSERT_TRUE(SegmentView::over(base, good.segment_size).ok());
  EXPECT_FALSE(SegmentView::over(base, good.segment_size - 1).ok());
  EXPECT_FALSE(SegmentView::over(base, 10).ok());
  std::mt19937_64 random(5);
  u64 refused = 0, accepted = 0;
  for (u32 i = 0; i < 20000; ++i) {
    *header = good;
    u32* words = reinterpret_cast<u32*>(header);
    const u32 value = static_cast<u32>(random() >> (random() % 64));
    words[random() % (offsetof(SegmentHeader, random_id) / 4)] = random() % 2 ? value : value * 64;
    const auto view = SegmentView::over(base, good.segment_size);
    if (!view) {
      ++refused;
      continue;
    }
    ++accepted;
    CheckingSink sink;
    sink.strict = false;
    Consumer consumer(view.value(), sink);
    consumer.drain();
    view.value().schema_text();
    view.value().info_text();
  }
  EXPECT_GT(refused, 10'000u);
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace gputrace::test
