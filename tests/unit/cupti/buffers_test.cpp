// Buffers lent to CUPTI: bounded, in order, never lent twice, never lost.
#include "cupti/buffers.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace gputrace {
namespace {

constexpr u64 kFirst = ActivityBuffers::kFirst;
constexpr Nanos kFast = ActivityBuffers::kFast, kSlow = ActivityBuffers::kSlow;

// One buffer is asked for, filled and given back so much later; its size.
u64 turn(ActivityBuffers& buffers, Nanos& now, Nanos out, bool full = true) {
  u64 size = 0;
  u8* data = buffers.request(size, now);
  now += out;
  buffers.complete(data, full ? size - 100 : 200, now);
  buffers.give_back(buffers.take().data);
  return size;
}

TEST(ActivityBuffers, SizesFollowTheRateAtWhichTheyFill) {
  ActivityBuffers buffers;
  buffers.configure(32u << 20);
  Nanos now = 1;
  for (u64 size = kFirst; size < ActivityBuffers::kLargest; size *= 2) EXPECT_EQ(turn(buffers, now, kFast / 2), size);
  EXPECT_EQ(turn(buffers, now, kFast / 2), ActivityBuffers::kLargest);
  EXPECT_EQ(turn(buffers, now, kFast * 2), ActivityBuffers::kLargest) << "right as it is";
  EXPECT_EQ(turn(buffers, now, kSlow * 2), ActivityBuffers::kLargest);
  EXPECT_EQ(turn(buffers, now, kFast / 2, false), ActivityBuffers::kLargest / 2) << "flushed, not filled";
  for (u64 size = ActivityBuffers::kLargest / 2; size > ActivityBuffers::kSmallest; size /= 2)
    EXPECT_EQ(turn(buffers, now, kSlow * 2), size);
  EXPECT_EQ(turn(buffers, now, kSlow * 2), ActivityBuffers::kSmallest);
  EXPECT_EQ(turn(buffers, now, kSlow * 2), ActivityBuffers::kSmallest);
}

TEST(ActivityBuffers, AThousandThreadsEachFindOne) {
  ActivityBuffers buffers;
  buffers.configure(32u << 20);
  Nanos now = 1;
  for (int i = 0; i < 20; ++i) turn(buffers, now, kFast / 2);  // large ones are in use
  u64 bytes = 0;
  for (int thread = 0; thread < 1000; ++thread) {
    u64 size = 0;
    ASSERT_NE(buffers.request(size, now), nullptr) << thread;
    bytes += size;
  }
  EXPECT_LE(bytes, 32u << 20);
  EXPECT_EQ(buffers.take_refused(), 0u);
}

// A thousand threads at a time: each buffer is known by its address, whichever they were made with, and serves again.
TEST(ActivityBuffers, AThousandAreKnownByTheirAddressAndServeAgain) {
  ActivityBuffers buffers;
  buffers.configure(32u << 20);
  std::vector<u8*> lent;
  std::set<u8*> known;
  u64 size = 0;
  for (int thread = 0; thread < 1000; ++thread) {
    lent.push_back(buffers.request(size));
    ASSERT_NE(lent.back(), nullptr) << thread;
    known.insert(lent.back());
    EXPECT_FALSE(buffers.owns(lent.back() + 8));
    lent.back()[size - 1] = 1;  // none reaches into another
    EXPECT_EQ(lent.back()[0], 0);
  }
  EXPECT_EQ(known.size(), 1000u);
  for (int round = 0; round < 3; ++round) {
    for (u8* const data : lent) EXPECT_TRUE(buffers.complete(data, 8));
    for (u8* const data : lent) {
      EXPECT_EQ(buffers.take().data, data);
      buffers.give_back(data);
    }
    EXPECT_EQ(buffers.take().data, nullptr);
    for (u8*& data : lent) {
      data = buffers.request(size);
      ASSERT_NE(data, nullptr);
    }
    EXPECT_EQ(std::set<u8*>(lent.begin(), lent.end()).size(), 1000u);
  }
  EXPECT_EQ(buffers.held(), 1000u);
}

TEST(ActivityBuffers, RefusesAndCountsWhenAllAreLent) {
  ActivityBuffers buffers;
  buffers.configure(64u << 10);  // eight of 8 KiB
  std::set<u8*> lent;
  u64 size = 0;
  while (u8* data = buffers.request(size)) {
    EXPECT_EQ(size, 8u << 10);
    EXPECT_TRUE(lent.insert(data).second) << "lent twice";
    data[0] = data[size - 1] = 1;
  }
  EXPECT_EQ(lent.size(), 8u);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(buffers.held(), 8u);
  EXPECT_EQ(buffers.request(size), nullptr);
  EXPECT_EQ(buffers.take_refused(), 2u);
  EXPECT_EQ(buffers.take_refused(), 0u);

  u8* first = *lent.begin();
  EXPECT_TRUE(buffers.complete(first, 100));
  EXPECT_EQ(buffers.request(size), nullptr) << "completed, not free yet";
  const ActivityBuffers::Completed taken = buffers.take();
  EXPECT_EQ(taken.data, first);
  EXPECT_EQ(taken.valid, 100u);
  buffers.give_back(first);
  EXPECT_EQ(buffers.request(size), first);
}

TEST(ActivityBuffers, ComeBackInTheOrderOfTheirCompletion) {
  ActivityBuffers buffers;
  buffers.configure(8u << 20);
  u64 size;
  u8* a = buffers.request(size);
  u8* b = buffers.request(size);
  u8* c = buffers.request(size);
  EXPECT_TRUE(buffers.complete(c, 1));
  EXPECT_TRUE(buffers.complete(a, 2));
  EXPECT_TRUE(buffers.complete(b, 3));
  EXPECT_EQ(buffers.take().data, c);
  EXPECT_EQ(buffers.take().data, a);
  EXPECT_EQ(buffers.take().data, b);
  EXPECT_EQ(buffers.take().data, nullptr);
}

TEST(ActivityBuffers, KnowsForeignAndRepeatedBuffers) {
  ActivityBuffers buffers;
  buffers.configure(8u << 20);
  u64 size;
  u8 other[64];
  EXPECT_FALSE(buffers.complete(other, 64));
  EXPECT_FALSE(buffers.complete(nullptr, 64));
  EXPECT_FALSE(buffers.owns(other));
  u8* own = buffers.request(size);
  EXPECT_TRUE(buffers.owns(own));
  EXPECT_TRUE(buffers.complete(own, size + 4096)) << "more than it holds";
  EXPECT_TRUE(buffers.complete(own, 8)) << "ours, though given back already";
  const ActivityBuffers::Completed taken = buffers.take();
  EXPECT_EQ(taken.valid, size);
  EXPECT_EQ(buffers.take().data, nullptr) << "once";
}

void share_among_threads(u64 budget) {
  ActivityBuffers buffers;
  buffers.configure(budget);
  std::atomic<u64> errors{0}, completed{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        u64 size;
        u8* data = buffers.request(size);
        if (!data) continue;
        if (data[0]) ++errors;
        data[0] = static_cast<u8>(t + 1);
        if (data[0] != t + 1) ++errors;
        buffers.complete(data, 1);
        ++completed;
      }
    });
  }
  u64 taken = 0;
  std::thread reader([&] {
    for (;;) {
      const bool last = stop;
      while (u8* data = buffers.take().data) {
        data[0] = 0;
        buffers.give_back(data);
        ++taken;
      }
      if (last) return;
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(errors, 0u);
  EXPECT_EQ(taken, completed);
  EXPECT_EQ(buffers.held(), 0u);
}

TEST(ActivityBuffers, ManyThreadsNeverShareOne) {
  share_among_threads(2u << 20);
  share_among_threads(256u << 10);  // of the smallest, several with one mapping
}

}  // namespace
}  // namespace gputrace
