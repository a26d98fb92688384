// What is looked for close to where it was found last, or is nearly in order already, against looking everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "analysis/gaps/host_log.h"
#include "analysis/read/tick_clock.h"
#include "analysis/timeline/activity_log.h"
#include "analysis/timeline/correlation_index.h"
#include "analysis/timeline/device_shapes.h"
#include "analysis/timeline/host_streams.h"
#include "analysis/timeline/range_projection.h"
#include "analysis/timeline/reorder_window.h"

namespace gputrace {
namespace {

using Random = std::mt19937_64;

Nanos below(Random& random, u64 end) { return static_cast<Nanos>(random() % end); }

TEST(HostLog, FindsTheCallsOfATimeWhereverItLookedLast) {
  Random random(1);
  HostLog log(1);
  std::vector<std::pair<Nanos, Nanos>> calls;  // as they should be there
  Nanos now = 1000;
  const auto look = [&](Nanos from, Nanos to) {
    std::vector<std::pair<Nanos, Nanos>> found, wanted;
    log.between(0, from, to, [&](const HostLog::Entry& entry) { found.emplace_back(entry.begin, entry.end); });
    std::copy_if(calls.begin(), calls.end(), std::back_inserter(wanted),
                 [&](const auto& call) { return call.second > from && call.first < to; });
    ASSERT_EQ(found, wanted) << from << " to " << to;
  };
  for (int round = 0; round < 3000; ++round) {
    for (u64 more = random() % 20; more != 0; --more) {
      const Nanos begin = now += below(random, 50);
      now += 1 + below(random, 100);
      log.add(0, begin, now, 1, HostLog::Kind::Launch, 0);
      calls.emplace_back(begin, now);
    }
    const Nanos oldest = calls.empty() ? now : calls.front().first;
    const Nanos near = std::max(oldest, now - 500),
                anywhere = oldest + below(random, static_cast<u64>(now - oldest) + 1);
    look(near, near + 200);
    if (round % 3 == 0) look(anywhere, anywhere + below(random, 400));
    if (round % 50 == 0) {
      const Nanos until = oldest + (now - oldest) / 2;
      log.trim(until);
      calls.erase(calls.begin(),
                  std::find_if(calls.begin(), calls.end(), [&](const auto& c) { return c.second >= until; }));
      look(until, until + 300);
    }
  }
}

TEST(RangeProjection, FindsTheRangeOfACallInAnyOrder) {
  Random random(2);
  RangeProjection in_order(1), shuffled(1);
  Nanos now = 0;
  u32 open = 0;
  for (u32 i = 0; i < 4000; ++i) {
    now += 1 + below(random, 20);
    const bool push = open == 0 || (open < 5 && random() % 2 == 0);
    for (RangeProjection* each : {&in_order, &shuffled}) push ? each->pushed(0, now, i % 37) : each->popped(0, now);
    open += push ? 1 : ~0u;
  }
  std::vector<Nanos> calls(20'000);
  for (Nanos& call : calls) call = below(random, static_cast<u64>(now) + 100);
  const auto run = [](RangeProjection& projection, Nanos call) { projection.ran(0, call, call + 7, call + 9, true); };
  for (const Nanos call : calls) run(shuffled, call);
  std::sort(calls.begin(), calls.end());
  for (const Nanos call : calls) run(in_order, call);
  const auto wanted = in_order.finish(), found = shuffled.finish();
  ASSERT_EQ(found.size(), wanted.size());
  u64 kernels = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].device_ns, wanted[i].device_ns);
    EXPECT_EQ(found[i].kernels, wanted[i].kernels);
    kernels += wanted[i].kernels;
  }
  EXPECT_GT(kernels, 20'000u);
}

// Which spans stay once there are too many: those of the slices that its result names, whatever order they came in.
TEST(ActivityLog, KeepsAllOfTheSlicesThatItNames) {
  Random random(3);
  ActivityLog log;
  std::vector<std::pair<Nanos, Nanos>> added;
  for (std::size_t i = 0; i < 3 * ActivityLog::kMost; ++i) {
    const Nanos begin = static_cast<Nanos>(i) * 100 + below(random, 20'000);
    added.emplace_back(begin, begin + 50 + below(random, 100));
    log.add(added.back().first, added.back().second, Activity::Kernel);
  }
  const Activities made = log.finish();
  ASSERT_GT(made.stride, 1);
  ASSERT_EQ(made.until, 0);
  const auto kept = std::count_if(added.begin(), added.end(),
                                  [&](const auto& span) { return made.keeps(span.first) || made.keeps(span.second); });
  EXPECT_EQ(made.spans.size(), static_cast<std::size_t>(kept));
}

// Whatever lies between them, and between them and their calls; also where some of them go.
TEST(ActivitySpans, AreWhatWasAdded) {
  Random random(5);
  ActivitySpans spans;
  std::vector<ActivitySpan> added;
  Nanos begin = 5'000'000'000'000;
  for (u32 i = 0; i < 20'000; ++i) {
    begin += i % 50 == 0 ? below(random, 10'000'000'000) - 5'000'000'000 : below(random, 20'000) - 500;
    const Nanos called = i % 3 == 0 ? 0 : begin + 1 - below(random, i % 70 == 0 ? 9'000'000'000 : 90'000);
    added.push_back({begin, called, static_cast<u32>(random()), i});
    spans.add(added.back());
  }
  const auto same = [&] {
    std::size_t at = 0;
    spans.for_each([&](const ActivitySpan& span) {
      ASSERT_LT(at, added.size());
      const ActivitySpan& wanted = added[at++];
      EXPECT_EQ(span.begin, wanted.begin);
      EXPECT_EQ(span.called, wanted.called);
      EXPECT_EQ(span.length, wanted.length);
      EXPECT_EQ(span.what, wanted.what);
    });
    EXPECT_EQ(at, added.size());
    EXPECT_EQ(spans.size(), added.size());
  };
  same();
  const auto keeps = [](const ActivitySpan& span) { return span.what % 7 < 2 || span.what % 1000 > 900; };
  spans.keep_if(keeps);
  std::erase_if(added, [&](const ActivitySpan& span) { return !keeps(span); });
  same();
  EXPECT_EQ(spans.newest_begin(), added.back().begin);
}

// All in the order of starts, and what starts together in the order in which it came.
TEST(ReorderWindow, PutsInOrderWhatIsNearlySoAndWhatIsNot) {
  for (const u64 disorder : {1u, 10u, 200u, 10'000u}) {
    Random random(disorder);
    ReorderWindow window(1u << 16);
    std::vector<std::pair<Nanos, u32>> added, given;
    const auto give = [&given](const DeviceOperation& operation) {
      given.emplace_back(operation.start, operation.correlation);
    };
    for (u32 i = 0; i < 200'000; ++i) {
      DeviceOperation operation;
      operation.correlation = i;
      const Nanos start = Nanos{i} * 2 / 3 + below(random, disorder) + 1;
      added.emplace_back(start, i);
      window.add(operation, {start, start + 5}, give);
    }
    window.finish(give);
    std::stable_sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    EXPECT_EQ(given, added) << disorder;
  }
}

TEST(CorrelationIndex, TheFirstOperationOfAnIdStaysUntilItIsGone) {
  CorrelationIndex index;
  for (u32 i = 1; i < 5000; ++i) {
    index.put_first(i, 2 * i, 0);
    index.put_first(i, 2 * i + 1, 0);
  }
  for (u32 i = 1; i < 5000; ++i) ASSERT_EQ(index.find(i, 0), 2 * i);
  index.put_first(7, 20'000, 1000);
  EXPECT_EQ(index.find(7, 1000), 20'000u) << "what it had was gone";
  index.put_first(4000, 20'001, 1000);
  EXPECT_EQ(index.find(4000, 1000), 8000u);
}

// Whatever ids are given out, dense or far apart, or alike in their last digits: what a map tells that forgets what is gone.
TEST(CorrelationIndex, TellsWhatAMapTellsWhateverIdsAreGivenOut) {
  for (const u64 apart : {1ull, 3ull, 1ull << 12, 1ull << 20}) {
    Random random(apart);
    CorrelationIndex index;
    std::map<u32, u32> known;
    for (u32 sequence = 0; sequence < 20'000; ++sequence) {
      const u32 oldest = sequence < 700 ? 0 : sequence - 700;
      const u32 id = static_cast<u32>((sequence + below(random, 40)) * apart);
      const auto there = known.find(id);
      const bool lives = there != known.end() && there->second >= oldest;
      if (random() % 3 == 0) {
        index.put(id, sequence, oldest);
        known[id] = sequence;
      } else {
        index.put_first(id, sequence, oldest);
        if (!lives) known[id] = sequence;
      }
      const u32 other = static_cast<u32>((sequence - below(random, std::min(sequence, 900u) + 1)) * apart);
      const auto wanted = known.find(other);
      ASSERT_EQ(index.find(other, oldest), wanted != known.end() && wanted->second >= oldest ? wanted->second : kNone)
          << apart << " " << sequence;
    }
  }
}

// What was found ahead is what was asked of that operation, and not earlier than kNext operations before it is given.
TEST(ReorderWindow, GivesWhatWasFoundAheadWithItsOperation) {
  Random random(11);
  struct Give {
    std::vector<u32> given;
    u32 next(const DeviceOperation& operation) {
      return 2 * operation.correlation + (static_cast<u32>(given.size()) << 16);
    }
    void soon(const DeviceOperation&) {}
    void operator()(DeviceOperation& operation, u32 found) {
      ASSERT_EQ(found & 0xffff, 2 * operation.correlation);
      ASSERT_LE(given.size() - (found >> 16), ReorderWindow::kNext);
      given.push_back(operation.correlation);
    }
  } give;
  ReorderWindow window(1u << 10);
  for (u32 i = 0; i < 30'000; ++i) {
    DeviceOperation operation;
    operation.correlation = i;
    const Nanos start = Nanos{i} + below(random, 20);
    window.add(operation, {start, start + 5}, give);
  }
  window.finish(give);
  EXPECT_EQ(give.given.size(), 30'000u);
}

// By what the driver says of streams: after the operation before it; with the legacy default stream, those of blocking streams and its own
// wait for each other.
TEST(HostStreams, WhatIsGivenWaitsForWhatTheDriverMakesItWaitFor) {
  constexpr u64 kLegacy = 1, kFirst = 100, kIndependent = 104;
  constexpr u32 kNever = kNone;
  Random random(5);
  HostStreams streams;
  streams.created(kIndependent, false);
  std::map<u64, u32> newest;  // operation, by stream
  std::vector<u32> waits;
  for (u32 sequence = 0; sequence < 20'000; ++sequence) {
    const u64 handle = random() % 50 == 0 ? kLegacy : kFirst + random() % 5;
    const auto newest_of = [&](u64 stream) { return newest.contains(stream) ? newest[stream] : kNever; };
    const u32 legacy = newest_of(kLegacy);
    std::set<u32> wanted{newest_of(handle)};
    if (handle != kIndependent && handle != kLegacy && legacy != kNever &&
        (newest_of(handle) == kNever || newest_of(handle) < legacy))
      wanted.insert(legacy);
    for (u64 other = kFirst; handle == kLegacy && other < kIndependent; ++other) {
      if (newest_of(other) != kNever && (legacy == kNever || newest_of(other) > legacy))
        wanted.insert(newest_of(other));
    }
    wanted.erase(kNever);
    waits.clear();
    const u32 one = streams.given(streams.find({0, handle, false, 0}), sequence, waits);
    std::set<u32> found(waits.begin(), waits.end());
    if (one != kNone) found.insert(one);
    ASSERT_EQ(found, wanted) << sequence << " " << handle;
    newest[handle] = sequence;
  }
}

// Whatever of their words differs, other kernels are of another shape; registers, and clusters of one block, are none.
TEST(DeviceShapes, TellsKernelsApartByAllThatAShapeIs) {
  const TextTable texts;
  DeviceShapes shapes(texts);
  DeviceKernel kernel{};
  kernel.name = 7, kernel.grid_x = kernel.grid_y = kernel.grid_z = 2,
  kernel.block_x = kernel.block_y = kernel.block_z = 4;
  const u32 first = shapes.of(kernel);
  std::set<u32> known{first};
  const auto is_new = [&](auto&& change) {
    DeviceKernel other = kernel;
    change(other);
    const u32 shape = shapes.of(other);
    EXPECT_EQ(shapes.of(other), shape);
    EXPECT_EQ(shapes.of(kernel), first);
    return known.insert(shape).second;
  };
  EXPECT_TRUE(is_new([](DeviceKernel& other) { other.name = 8; }));
  for (u32 DeviceKernel::*const word :
       {&DeviceKernel::grid_x, &DeviceKernel::grid_y, &DeviceKernel::grid_z, &DeviceKernel::block_x,
        &DeviceKernel::block_y, &DeviceKernel::block_z, &DeviceKernel::dynamic_shared_bytes, &DeviceKernel::device})
    EXPECT_TRUE(is_new([word](DeviceKernel& other) { other.*word = 3; }));
  for (u16 DeviceKernel::*const word : {&DeviceKernel::cluster_x, &DeviceKernel::cluster_y, &DeviceKernel::cluster_z})
    EXPECT_TRUE(is_new([word](DeviceKernel& other) { other.*word = 3; }));
  EXPECT_FALSE(is_new([](DeviceKernel& other) { other.registers = 3; }));
  EXPECT_FALSE(is_new([](DeviceKernel& other) { other.cluster_x = other.cluster_y = other.cluster_z = 1; }));
}

// Threads and streams whose numbers are close together, as they are: each pair keeps its stream.
TEST(HostStreams, ManyThreadsAndStreamsKeepTheirNumbers) {
  HostStreams streams;
  std::vector<std::tuple<u64, u32, u32>> known;
  for (u64 handle = 0x500; handle < 0x540; ++handle) {
    for (u32 thread = 1; thread < 9; ++thread)
      known.emplace_back(handle, thread, streams.find({0, handle, false, thread}));
  }
  EXPECT_EQ(streams.size(), 0x40u);
  for (int round = 0; round < 2; ++round) {
    for (const auto& [handle, thread, stream] : known) {
      EXPECT_EQ(streams.find({0, handle, false, thread}), stream);
      EXPECT_EQ(streams.handle(stream), handle);
    }
  }
}

// Pieces of different rates, and what lies outside of them, in any order.
TEST(TickClock, TellsWhatTheMapTellsWhereverItWasLast) {
  Random random(7);
  std::vector<Anchor> anchors;
  Ticks ticks = 1'000'000;
  for (Nanos at = 0; at < 100'000'000'000; at += 1'000'000'000, ticks += 2'999'900'000 + random() % 200'000)
    anchors.push_back({ticks, 5'000'000 + at, 1'700'000'000'000'000'000 + at, 40});
  const ClockMap map(ClockKind::Tsc, anchors);
  ASSERT_EQ(map.anchors().size(), anchors.size());
  TickClock clock(map);
  RecordHeader record{};
  for (int i = 0; i < 20'000; ++i) {
    record.begin = random() % (ticks + 9'000'000'000);
    record.end = i % 3 == 0 ? random() % (ticks + 9'000'000'000) : record.begin + random() % 6'000'000'000;
    ASSERT_NEAR(clock.nanos(record.begin), map.nanos(record.begin), 1) << record.begin;
    const TimeSpan ran = clock.span(record);
    ASSERT_EQ(clock.end(record), ran.to) << record.begin << " to " << record.end;
    ASSERT_NEAR(ran.from, map.nanos(record.begin), 1) << record.begin;
    ASSERT_NEAR(ran.to, map.nanos(std::max(record.begin, record.end)), 1) << record.begin << " to " << record.end;
    ASSERT_LE(ran.from, ran.to);
  }
}

}  // namespace
}  // namespace gputrace
