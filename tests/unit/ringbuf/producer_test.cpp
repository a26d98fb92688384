// The producer over a segment in ordinary memory: what a thread writes, counts and hands over, with the consumer played
// by the test.
#include "ringbuf/producer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "ringbuf/segment_create.h"

namespace gputrace {
namespace {

constexpr u64 kGeneration = 7;

class ProducerTest : public testing::Test {
 protected:
  void SetUp() override { make_segment(OnFull::Drop); }
  void TearDown() override { gate.generation.store(kGateIdle); }

  void make_segment(OnFull on_full) {
    SegmentRequest request;
    request.budget = kMinSegment;
    request.on_full = on_full;
    ASSERT_TRUE(plan_segment(request, header_));
    memory_.assign(header_.segment_size + 4096, 0);
    char* base = reinterpret_cast<char*>(align_up(reinterpret_cast<u64>(memory_.data()), 4096));
    begin_segment(base, header_, request);
    ledgers_.assign(header_.slot_count, {});
    producer.thread_joined = nullptr;
    adopt_segment(base, ledgers_.data());
    producer.session_begin = 0;  // the tests' stamps begin at 1
    producer.retry_ticks = 0;
    producer.stale_ticks = 1'000'000'000'000;
    gate.generation.store(kGeneration);
    thread_state = ThreadState{};
    join_session(kGeneration);
  }

  static bool write(u64 object, Ticks now = 1) {
    char* at = reserve(thread_state, sizeof(Call), now);
    if (!at) return false;
    Call record{};
    record.header = {static_cast<u16>(RecordType::Call), sizeof(Call), 1, 0, now, now};
    record.object = object;
    std::memcpy(at, &record, sizeof record);
    commit(thread_state, at, sizeof record, kGeneration);
    return true;
  }
  u32 blocks_in(BlockState state) const {
    u32 count = 0;
    for (u32 i = 0; i < producer.block_count; ++i) count += block_state(producer.block_states[i].load()) == state;
    return count;
  }
  BlockHeader* block(u32 index) const {
    return reinterpret_cast<BlockHeader*>(producer.blocks + u64{index} * producer.block_size);
  }
  static u64 dropped(const ThreadSlot& slot) {
    u64 sum = 0;
    for (u64 d : slot.dropped) sum += d;
    return sum;
  }

  SegmentHeader header_{};
  std::vector<char> memory_;
  std::vector<SlotLedger> ledgers_;
};

TEST_F(ProducerTest, WhatIsCommittedIsInTheBlockInOrder) {
  for (u64 i = 0; i < 5; ++i) ASSERT_TRUE(write(100 + i));
  const ThreadSlot& slot = *thread_state.slot;
  EXPECT_EQ(slot.seen, 5u);
  EXPECT_EQ(dropped(slot), 0u);
  const u32 index = slot.current_block.load();
  ASSERT_LT(index, producer.block_count);
  EXPECT_EQ(block_state(producer.block_states[index].load()), BlockState::Writing);
  EXPECT_EQ(block(index)->committed.load(), 5 * sizeof(Call));
  EXPECT_EQ(block(index)->slot, static_cast<u32>(&slot - producer.slots));
  EXPECT_EQ(block(index)->first_record, 0u);
  const Call* records = reinterpret_cast<const Call*>(block(index) + 1);
  for (u64 i = 0; i < 5; ++i) EXPECT_EQ(records[i].object, 100 + i);
}

TEST_F(ProducerTest, BlocksChainWithSequenceAndFirstRecord) {
  const u64 per_block = (producer.block_size - sizeof(BlockHeader)) / sizeof(Call);
  for (u64 i = 0; i < per_block * 2 + 1; ++i) ASSERT_TRUE(write(i));
  EXPECT_EQ(blocks_in(BlockState::Full), 2u);
  EXPECT_EQ(blocks_in(BlockState::Writing), 1u);
  const BlockHeader* current = block(thread_state.slot->current_block.load());
  EXPECT_EQ(current->sequence, 2u);
  EXPECT_EQ(current->first_record, per_block * 2);
  EXPECT_EQ(current->committed.load(), sizeof(Call));
}

TEST_F(ProducerTest, AFullPoolDropsAndCountsAndTellsTheGap) {
  u64 stored = 0;
  while (write(stored)) ++stored;
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(write(0, 50));
  const ThreadSlot& slot = *thread_state.slot;
  EXPECT_EQ(slot.seen, stored + 10);
  EXPECT_EQ(slot.dropped[static_cast<u32>(DropReason::RingFull)], 10u);
  EXPECT_EQ(blocks_in(BlockState::Free), kFirstSharedBlock) << "the reserved blocks are not for threads";

  producer.block_states[kFirstSharedBlock + 1].store(
      next_block_word(producer.block_states[kFirstSharedBlock + 1].load(), BlockState::Free));
  ASSERT_TRUE(write(77, 60));
  const BlockHeader* current = block(slot.current_block.load());
  const Gap* gap = reinterpret_cast<const Gap*>(current + 1);
  EXPECT_EQ(gap->header.type, static_cast<u16>(RecordType::Gap));
  EXPECT_EQ(gap->count, 10u);
  EXPECT_EQ(gap->reason, static_cast<u32>(DropReason::RingFull));
  EXPECT_EQ(reinterpret_cast<const Call*>(gap + 1)->object, 77u);
  EXPECT_EQ(current->first_record, stored);
  EXPECT_EQ(current->committed.load(), sizeof(Gap) + sizeof(Call));
  EXPECT_EQ(slot.seen - dropped(slot), stored + 2) << "seen = committed + dropped, the gap record included";
}

TEST_F(ProducerTest, OverwriteTakesTheOldestBlockButNeverDefinitions) {
  make_segment(OnFull::Overwrite);
  ASSERT_TRUE(begin_definition());
  char* at = reserve_definition(sizeof(Call), 1);
  ASSERT_NE(at, nullptr);
  commit_definition(at, sizeof(Call), kGeneration);
  end_definition();
  const u32 definitions_block = producer.slots[0].current_block.load();
  const u64 per_block = (producer.block_size - sizeof(BlockHeader)) / sizeof(Call);
  const u64 rounds = u64{producer.block_count} * per_block * 3;
  for (u64 i = 0; i < rounds; ++i) ASSERT_TRUE(write(i, 100 + i));
  EXPECT_EQ(dropped(*thread_state.slot), 0u);
  EXPECT_EQ(block(definitions_block)->slot, 0u);
  EXPECT_EQ(block(definitions_block)->committed.load(), sizeof(Call));
  u64 lowest = ~0ull;
  for (u32 i = kFirstSharedBlock; i < producer.block_count; ++i) lowest = std::min(lowest, block(i)->first_record);
  EXPECT_GE(lowest, rounds - u64{producer.block_count} * per_block) << "what is left is the newest";
}

TEST_F(ProducerTest, ASignalHandlerInTheMiddleOfAWriteIsDroppedAsNested) {
  char* at = reserve(thread_state, sizeof(Call), 1);
  ASSERT_NE(at, nullptr);
  EXPECT_FALSE(write(2));  // what a handler would do now
  std::memset(at, 0, sizeof(Call));
  commit(thread_state, at, sizeof(Call), kGeneration);
  EXPECT_TRUE(write(3));
  EXPECT_EQ(thread_state.slot->seen, 3u);
  EXPECT_EQ(thread_state.slot->dropped[static_cast<u32>(DropReason::Nested)], 1u);
}

// A handler may come when a launch has raised `busy` and has not begun its record: with no room at the cursor, or with
// whatever lies there.
TEST_F(ProducerTest, AHandlerBeforeTheRecordIsBegunIsDroppedWithoutALookAtTheCursor) {
  thread_state.busy = sizeof(KernelLaunch);
  ASSERT_EQ(thread_state.cursor, nullptr);  // no block yet, or none to be had
  EXPECT_FALSE(write(1));
  EXPECT_EQ(thread_state.busy, sizeof(KernelLaunch));
  thread_state.busy = 0;
  ASSERT_TRUE(write(2));
  thread_state.cursor = thread_state.limit;  // in the last block this is the end of the mapping
  thread_state.busy = sizeof(KernelLaunch);
  EXPECT_FALSE(write(3));
  EXPECT_EQ(thread_state.slot->dropped[static_cast<u32>(DropReason::Nested)], 2u);
  EXPECT_EQ(thread_state.slot->seen, 3u);
}

TEST_F(ProducerTest, UntouchedMemoryAtTheCursorIsNotABegunRecord) {
  ASSERT_TRUE(write(1));
  char* const cursor = thread_state.cursor;
  ASSERT_EQ(reinterpret_cast<RecordHeader*>(cursor)->begin, 0u);
  ASSERT_EQ(thread_state.slot->in_flight[0].begin.load(), 0u);
  thread_state.busy = sizeof(KernelLaunch);
  EXPECT_FALSE(write(2));
  EXPECT_EQ(thread_state.cursor, cursor);
  EXPECT_EQ(thread_state.busy, sizeof(KernelLaunch));
  EXPECT_EQ(thread_state.slot->dropped[static_cast<u32>(DropReason::Nested)], 1u);
}

TEST_F(ProducerTest, ABegunRecordGivesWayAndComesBackWhole) {
  ASSERT_TRUE(write(1));
  for (u32 depth = 0; depth < kBegunDepth; ++depth) {  // alone, or within one other call
    const Ticks begin = 50 + depth;
    auto* begun = reinterpret_cast<KernelLaunch*>(thread_state.cursor);
    begun->header.begin = begin;
    begun->function = 0xf00d;
    std::atomic<u64>& in_flight = thread_state.slot->in_flight[depth].begin;
    in_flight.store(begin);
    thread_state.busy = sizeof(KernelLaunch);
    ASSERT_TRUE(write(2, begin));
    in_flight.store(0);
    char* at = reserve_begun(thread_state, sizeof(KernelLaunch), begin, 60);
    ASSERT_NE(at, nullptr);
    EXPECT_NE(at, reinterpret_cast<char*>(begun));
    EXPECT_EQ(reinterpret_cast<KernelLaunch*>(at)->function, 0xf00du);
    commit(thread_state, at, sizeof(KernelLaunch), kGeneration);
  }
  EXPECT_EQ(thread_state.slot->seen, 1u + 2 * kBegunDepth);
  EXPECT_EQ(dropped(*thread_state.slot), 0u);
}

TEST_F(ProducerTest, SignalsAtAnyInstantLoseNothingUncounted) {
  static u64 handled = 0;
  handled = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++handled;
    write(1'000'000);
  };
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  timer_t timer;
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, nullptr, &timer), 0);
  itimerspec every{{0, 50'000}, {0, 50'000}};
  ASSERT_EQ(timer_settime(timer, 0, &every, nullptr), 0);
  u64 written = 0;
  const Nanos until = monotonic_nanos() + 200'000'000;
  while (monotonic_nanos() < until) {
    write(written++);
    for (u32 i = 0; i < producer.block_count; ++i) {  // the consumer: gives every full block back
      const u64 word = producer.block_states[i].load();
      if (block_state(word) == BlockState::Full)
        producer.block_states[i].store(next_block_word(word, BlockState::Free));
    }
  }
  timer_delete(timer);
  ASSERT_GT(handled, 10u);
  const ThreadSlot& slot = *thread_state.slot;
  const BlockHeader* current = block(slot.current_block.load());
  u64 in_block = 0;
  for (u64 offset = 0; offset < current->committed.load();) {
    offset += reinterpret_cast<const RecordHeader*>(reinterpret_cast<const char*>(current + 1) + offset)->size;
    ++in_block;
  }
  EXPECT_EQ(slot.seen - dropped(slot), current->first_record + in_block);
  EXPECT_GE(slot.seen, written + handled);
}

TEST_F(ProducerTest, AChildOfForkPublishesNothing) {
  ASSERT_TRUE(write(1));
  char* at = reserve(thread_state, sizeof(Call), 2);
  ASSERT_NE(at, nullptr);
  std::memset(at, 0, sizeof(Call));
  gate.generation.store(kGateIdle);  // what MADV_WIPEONFORK does in the child
  const u32 before = thread_state.block->committed.load();
  commit(thread_state, at, sizeof(Call), kGeneration);
  EXPECT_EQ(thread_state.block->committed.load(), before);
}

TEST_F(ProducerTest, AnEndedThreadHandsOverAndItsSlotIsTakenAgainAfterTheConsumerFreedIt) {
  ThreadSlot* slot = nullptr;
  u32 index = 0;
  std::thread([&] {
    join_session(kGeneration);
    slot = thread_state.slot;
    write(5);
    index = slot->current_block.load();
    leave_session();
  }).join();
  EXPECT_EQ(slot->state.load(), static_cast<u32>(SlotState::Ended));
  EXPECT_NE(slot->end, 0u);
  EXPECT_EQ(slot->seen, 1u);
  EXPECT_EQ(block_state(producer.block_states[index].load()), BlockState::Full);
  const u32 incarnation = slot->incarnation;
  slot->state.store(static_cast<u32>(SlotState::Free));
  for (u32 i = 0; i < producer.slot_count; ++i) {
    std::thread([&] {
      join_session(kGeneration);
      write(6);
      ThreadSlot* mine = thread_state.slot;
      leave_session();
      mine->state.store(static_cast<u32>(SlotState::Free));
    }).join();
  }
  EXPECT_GT(slot->incarnation, incarnation);
}

TEST_F(ProducerTest, MoreThreadsThanSlotsAreCountedAsUnslotted) {
  std::vector<ThreadSlot*> taken;
  for (u32 i = 1; i < producer.slot_count; ++i) {
    u32 free = 0;
    producer.slots[i].tid = getpid();
    if (producer.slots[i].state.compare_exchange_strong(free, static_cast<u32>(SlotState::Live)))
      taken.push_back(&producer.slots[i]);
  }
  std::thread([] {
    join_session(kGeneration);
    EXPECT_EQ(thread_state.slot, &producer.sink);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(write(1));
  }).join();
  EXPECT_EQ(producer.control->unslotted.load(), 3u);
  EXPECT_EQ(taken.size(), producer.slot_count - 2);
}

TEST_F(ProducerTest, WhoWaitsForRoomHasASlotAndBlocksOfItsOwn) {
  while (write(1)) {
  }
  for (u32 i = 1; i + 1 < producer.slot_count; ++i) {
    producer.slots[i].tid = getpid();
    producer.slots[i].state.store(static_cast<u32>(SlotState::Live));
  }
  const u64 per_block = (producer.block_size - sizeof(BlockHeader)) / sizeof(Call);
  std::thread([&] {
    join_session_patiently(kGeneration);
    ASSERT_EQ(thread_state.slot, producer.slots + producer.slot_count - 1);
    for (u64 i = 0; i < kPatientBlocks * per_block; ++i) {
      ASSERT_TRUE(room_for(thread_state, sizeof(Call)));
      ASSERT_TRUE(write(i));
    }
    EXPECT_FALSE(room_for(thread_state, sizeof(Call))) << "definitions keep theirs";
    EXPECT_FALSE(write(1));
  }).join();
  EXPECT_EQ(blocks_in(BlockState::Free), kReservedBlocks);
}

TEST_F(ProducerTest, WhatDeadThreadsHoldIsHandedOverWhenSomebodyAsks) {
  ThreadSlot* slot = nullptr;
  std::thread([&] {
    join_session(kGeneration);
    slot = thread_state.slot;
    write(5);
  }).join();
  slot->tid = 0x3ffffff;  // it has ended without a word
  const u32 index = slot->current_block.load();
  end_dead_threads();
  EXPECT_EQ(slot->state.load(), static_cast<u32>(SlotState::Ended));
  EXPECT_EQ(block_state(producer.block_states[index].load()), BlockState::Full);
  EXPECT_EQ(thread_state.slot->state.load(), static_cast<u32>(SlotState::Live)) << "the living stay";
}

TEST_F(ProducerTest, WhoWaitsIsAliveWhenItAsksWhoIsDead) {
  std::thread([] {
    join_session_patiently(kGeneration);
    ASSERT_TRUE(write(1));
    const ThreadState own = thread_state;
    thread_state = ThreadState{};  // as cupti/ring.cpp does: its own calls are nobody's
    end_dead_threads();
    EXPECT_EQ(own.slot->state.load(), static_cast<u32>(SlotState::Live));
    EXPECT_EQ(own.slot->current_block.load(), kReservedBlocks);
  }).join();
}

TEST_F(ProducerTest, SlotsOfThreadsThatVanishedAreEndedWhenNoneIsFree) {
  for (u32 i = 1; i < producer.slot_count; ++i) {
    producer.slots[i].tid = 0x3ffffff;  // no such thread
    producer.slots[i].state.store(static_cast<u32>(SlotState::Live));
  }
  producer.control->consumer_state.store(
      static_cast<u32>(ConsumerState::Gone));  // nobody drains: the producer takes them back itself
  producer.slots[3].seen = 11;
  std::thread([] {
    join_session(kGeneration);
    EXPECT_NE(thread_state.slot, &producer.sink);
    EXPECT_TRUE(write(1));
  }).join();
}

TEST_F(ProducerTest, DefinitionsAreLockedOnceAndAStuckHolderIsReplaced) {
  ASSERT_TRUE(begin_definition());
  EXPECT_FALSE(begin_definition()) << "the holder itself, as from a signal handler";
  std::thread([] { EXPECT_FALSE(begin_definition()) << "bounded wait"; }).join();
  end_definition();
  producer.definition_lock.store(0x3ffffff);  // a thread that is gone
  EXPECT_TRUE(begin_definition());
  end_definition();
}

TEST_F(ProducerTest, AHolderOfTheDefinitionsThatLostItsProcessorIsWaitedForWhereAskedTo) {
  std::atomic<bool> held = false, go = false;
  std::thread holder([&] {
    ASSERT_TRUE(begin_definition());
    held = true;
    while (!go) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    end_definition();
  });
  while (!held) std::this_thread::yield();
  EXPECT_FALSE(begin_definition()) << "a launch does not wait";
  go = true;
  EXPECT_TRUE(begin_definition(kRestsForWhatIsSaidOnce));
  EXPECT_FALSE(begin_definition(kRestsForWhatIsSaidOnce)) << "the holder itself: at once";
  end_definition();
  holder.join();
}

TEST(SegmentPlan, FitsItsBudgetAtEverySize) {
  for (Bytes budget = kMinSegment; budget <= (256u << 20); budget += budget / 3 + 4096) {
    SegmentRequest request;
    request.budget = budget;
    request.schema_size = 40'000;
    request.info_size = 3'000;
    SegmentHeader header;
    ASSERT_TRUE(plan_segment(request, header)) << budget;
    EXPECT_LE(header.blocks_offset + u64{header.block_count} * header.block_size, header.segment_size);
    EXPECT_LE(header.segment_size, budget);
    EXPECT_GE(header.slot_count, kMinSlots);
    EXPECT_LE(header.slot_count, kMaxSlots);
    EXPECT_GE(header.slots_offset, header.text_offset + 43'000);
  }
  SegmentRequest tiny;
  tiny.budget = kMinSegment - 4096;
  SegmentHeader header;
  EXPECT_FALSE(plan_segment(tiny, header));
}

TEST(SegmentCreate, IsSealedReservedAndHigh) {
  SegmentRequest request;
  request.budget = 2u << 20;
  request.schema = "record 1 Call\n";
  request.schema_size = 14;
  request.info = "version\t1\n";
  request.info_size = 10;
  request.pid = getpid();
  CreatedSegment segment;
  ASSERT_EQ(create_segment(request, segment), 0);
  EXPECT_GE(segment.fd, 8);
  EXPECT_NE(ftruncate(segment.fd, 4096), 0);
  EXPECT_NE(ftruncate(segment.fd, 64u << 20), 0);
  EXPECT_EQ(std::memcmp(segment.base + segment.header->text_offset, "record 1 Call\nversion\t1\n", 24), 0);
  EXPECT_EQ(segment.header->magic, kSegmentMagic);
  EXPECT_EQ(segment.header->pid, getpid());
  close(segment.fd);
}

}  // namespace
}  // namespace gputrace
