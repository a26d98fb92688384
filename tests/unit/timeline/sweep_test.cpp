// Unions, gaps and queues against a reference that looks at every nanosecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "analysis/timeline/activity_log.h"
#include "analysis/timeline/correlation_index.h"
#include "analysis/timeline/device_sweep.h"
#include "analysis/timeline/launch_window.h"
#include "analysis/timeline/reorder_window.h"
#include "analysis/timeline/stream_track.h"

namespace gputrace {
namespace {

struct Interval {
  DeviceClass what;
  Nanos start, end;
};

std::vector<Interval> random_intervals(std::mt19937_64& random, std::size_t count, Nanos range) {
  std::vector<Interval> made;
  for (std::size_t i = 0; i < count; ++i) {
    const Nanos start = static_cast<Nanos>(random() % static_cast<u64>(range));
    made.push_back({static_cast<DeviceClass>(random() % 3), start, start + static_cast<Nanos>(random() % 40)});
  }
  std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  return made;
}

TEST(DeviceSweep, AgreesWithEveryNanosecondOfRandomPrograms) {
  std::mt19937_64 random(42);
  for (int round = 0; round < 300; ++round) {
    const Nanos range = 50 + static_cast<Nanos>(random() % 3000);
    const auto intervals = random_intervals(random, 1 + random() % 120, range);
    DeviceSweep sweep;
    DeviceTimes times;
    std::vector<std::pair<Nanos, Nanos>> gaps;
    for (const Interval& each : intervals) {
      if (const Nanos idle = sweep.idle_before(each.start)) gaps.emplace_back(each.start - idle, each.start);
      EXPECT_TRUE(sweep.add(times, each.what, each.start, each.end));
    }
    sweep.finish(times);
    u64 busy = 0, compute = 0, collective = 0, copy = 0, bare_collective = 0, bare_copy = 0;
    std::vector<std::pair<Nanos, Nanos>> expected;
    for (Nanos t = times.first; t < times.last; ++t) {
      bool on[3] = {};
      for (const Interval& each : intervals)
        if (each.start <= t && t < each.end) on[static_cast<unsigned>(each.what)] = true;
      busy += on[0] || on[1] || on[2];
      compute += on[0];
      collective += on[1];
      copy += on[2];
      bare_collective += on[1] && !on[0];
      bare_copy += on[2] && !on[0] && !on[1];
      if (on[0] || on[1] || on[2]) continue;
      if (!expected.empty() && expected.back().second == t)
        ++expected.back().second;
      else
        expected.emplace_back(t, t + 1);
    }
    EXPECT_EQ(times.busy_ns, busy);
    EXPECT_EQ(times.compute_ns, compute);
    EXPECT_EQ(times.collective_ns, collective);
    EXPECT_EQ(times.copy_ns, copy);
    EXPECT_EQ(times.exposed_collective_ns, bare_collective);
    EXPECT_EQ(times.exposed_copy_ns, bare_copy);
    EXPECT_EQ(times.busy_ns + times.idle_ns, times.span_ns());
    EXPECT_EQ(times.compute_ns + times.exposed_collective_ns + times.exposed_copy_ns + times.idle_ns, times.span_ns());
    // An operation of no length within a gap cuts it in two: the sums are the same.
    u64 idle = 0, listed = 0;
    for (const auto& [begin, end] : expected) idle += static_cast<u64>(end - begin);
    for (const auto& [begin, end] : gaps) listed += static_cast<u64>(end - begin);
    EXPECT_EQ(listed, idle);
    EXPECT_GE(gaps.size(), expected.size());
  }
}

TEST(DeviceSweep, WhatComesTooLateIsSaidAndNeverCountedTwice) {
  DeviceSweep sweep;
  DeviceTimes times;
  EXPECT_TRUE(sweep.add(times, DeviceClass::Compute, 100, 200));
  EXPECT_TRUE(sweep.add(times, DeviceClass::Compute, 300, 310));
  EXPECT_FALSE(sweep.add(times, DeviceClass::Copy, 150, 400));  // 310..400 is still to be counted
  sweep.finish(times);
  EXPECT_EQ(times.busy_ns, 100u + 10u + 90u);
  EXPECT_EQ(times.idle_ns, 100u);
  EXPECT_EQ(times.span_ns(), 300u);
}

// How many were waiting in each nanosecond, counted.
void expect_every_nanosecond(const QueueDepth& queue, const std::vector<Nanos>& launched,
                             const std::vector<Nanos>& started, const std::vector<Nanos>& calls) {
  std::array<u64, kDepthClasses> time{}, found{}, found_ns{};
  const auto waiting = [&](Nanos at, std::size_t most) {
    u32 depth = 0;
    for (std::size_t i = 0; i < most; ++i) depth += launched[i] <= at && at < started[i];
    return depth;
  };
  u64 area = 0;
  for (Nanos at = launched.front(); at < started.back(); ++at) {
    const u32 depth = waiting(at, launched.size());
    ++time[depth_class(depth)];
    area += depth;
  }
  for (std::size_t i = 0; i < launched.size(); ++i) {
    ++found[depth_class(waiting(launched[i], i))];
    found_ns[depth_class(waiting(launched[i], i))] += static_cast<u64>(calls[i]);
  }
  EXPECT_EQ(queue.time_ns, time);
  EXPECT_EQ(queue.span_ns(), static_cast<u64>(started.back() - launched.front()));
  EXPECT_EQ(queue.waited_ns(), area);
  EXPECT_EQ(queue.calls, found);
  EXPECT_EQ(queue.calls_ns, found_ns);
  u64 course = 0;
  Nanos covered = 0;
  for (std::size_t i = 0; i < queue.course.size(); ++i) {
    course += queue.course.bin(i).area;
    covered += queue.course.bin_end(i) - queue.course.bin_begin(i);
    u32 most = 0;
    for (Nanos at = queue.course.bin_begin(i); at < queue.course.bin_end(i); ++at)
      most = std::max(most, waiting(at, launched.size()));
    EXPECT_EQ(queue.course.bin(i).deepest, most);
  }
  EXPECT_EQ(course, area);
  EXPECT_EQ(covered, started.back() - launched.front());
}

TEST(StreamTrack, TheQueueIsAsDeepAsWhatWasLaunchedAndHadNotStarted) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    StreamTrack track, alone;  // what an export has: depths, without how long they lasted
    StreamTimes times, few;
    std::vector<Nanos> calls;
    std::vector<Nanos> launched, started;
    Nanos launch = 0, start = 0;
    const std::size_t count = 1 + random() % 300;
    u32 deepest = 0;
    u64 waited = 0;
    for (std::size_t i = 0; i < count; ++i) {
      launch += static_cast<Nanos>(random() % 20);
      start = std::max(start, launch) + static_cast<Nanos>(random() % 22);
      launched.push_back(launch);
      started.push_back(start);
      u32 expected = 1;
      for (std::size_t k = 0; k < i; ++k) expected += started[k] > launch;
      calls.push_back(static_cast<Nanos>(random() % 9));
      EXPECT_EQ(track.queued(times, launch, calls.back(), start, true), expected);
      EXPECT_EQ(alone.queued(few, launch, calls.back(), start, false), expected);
      track.ran(times, start, start + 1, false);
      deepest = std::max(deepest, expected);
      waited += static_cast<u64>(start - launch);
    }
    track.finish(times);
    EXPECT_EQ(times.queue.deepest, deepest);
    EXPECT_EQ(times.queue.waited_ns(), waited);
    EXPECT_EQ(times.joined, count);
    EXPECT_EQ(few.joined, count);
    EXPECT_EQ(few.queue.span_ns(), 0u);
    expect_every_nanosecond(times.queue, launched, started, calls);
  }
}

TEST(DepthCourse, StaysSmallAndKeepsWhatItHolds) {
  DepthCourse course;
  std::mt19937_64 random(9);
  Nanos at = 1'000'000;
  u64 area = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Nanos until = at + static_cast<Nanos>(random() % 40'000);
    const u32 depth = static_cast<u32>(random() % 2000);
    course.add(depth, at, until);
    area += depth * static_cast<u64>(until - at);
    at = until;
  }
  EXPECT_LE(course.size(), DepthCourse::kBins);
  EXPECT_GT(course.size(), DepthCourse::kBins / 2);
  u64 sum = 0;
  for (std::size_t i = 0; i < course.size(); ++i) sum += course.bin(i).area;
  EXPECT_EQ(sum, area);
  EXPECT_EQ(course.bin_begin(0), 1'000'000);
  EXPECT_EQ(course.bin_end(course.size() - 1), at);
}

TEST(ReorderWindow, GivesEverythingOnceAndInOrderAsFarAsItReaches) {
  std::mt19937_64 random(5);
  ReorderWindow window(64);
  std::vector<Nanos> given;
  const auto give = [&given](const DeviceOperation& operation) { given.push_back(operation.start); };
  for (Nanos i = 0; i < 1000; ++i) {
    DeviceOperation operation;
    operation.start = i * 10 + static_cast<Nanos>(random() % 300);  // at most 30 places out of order
    window.add(operation, {operation.start, operation.end}, give);
  }
  window.finish(give);
  EXPECT_EQ(given.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(given.begin(), given.end()));
}

// A long window of ids in order, of which every third never comes: each look for one of those must stay short (it took
// minutes when ids in order lay side by side).
TEST(CorrelationIndex, FindsWhatItHasAndMissesTheRestAtOnce) {
  CorrelationIndex index;
  constexpr u32 kIds = 1'200'000, kWindow = 400'000;
  for (u32 id = 1; id < kIds; ++id) {
    const u32 oldest = id > kWindow ? id - kWindow : 0;
    index.put(id, id, oldest);
    if (id % 3 == 0) {
      EXPECT_EQ(index.find(id + kIds, oldest), kNone);
    }
    if (id % 1000 == 0) {
      EXPECT_EQ(index.find(id, oldest), id);
      if (oldest > 1) {
        EXPECT_EQ(index.find(oldest, oldest), oldest);
        EXPECT_EQ(index.find(oldest - 1, oldest), kNone);
      }
    }
  }
}

HostOperation launch_at(Nanos time) {
  HostOperation made;
  made.begin = time, made.end = time + 1;
  made.thread = 0;
  return made;
}

// Where records follow their calls closely the window stays small; while the host runs ahead nothing that waits may leave.
TEST(LaunchWindow, GrowsWhileTheHostRunsAhead) {
  LaunchWindow window(1);
  window.set_active();
  const u32 stream = window.streams().find({});
  u32 made = 0, answered = 0;
  const auto launch = [&] { window.add(launch_at(made++), stream); };
  const auto answer = [&] {
    HostOperation* const operation = window.find(answered);
    ASSERT_NE(operation, nullptr) << answered;
    EXPECT_EQ(operation->begin, answered);  // it is that one, wherever the window grew
    operation->answered = true;
    window.passed(answered++);
  };
  for (u32 i = 0; i < LaunchWindow::kMost; ++i) launch(), answer();
  EXPECT_LE(window.size(), LaunchWindow::kHistory * 2);
  EXPECT_NE(window.find(answered - LaunchWindow::kHistory), nullptr);
  for (u32 i = 0; i < 700'000; ++i) launch();
  EXPECT_LE(window.size(), 1u << 20);
  while (answered != made) answer();
  EXPECT_EQ(window.forgotten(), 0u);
  EXPECT_EQ(window.next(), made);
}

TEST(LaunchWindow, HasAnEnd) {
  LaunchWindow window(1);
  window.set_active();
  const u32 stream = window.streams().find({});
  constexpr u32 kMore = 1000;
  for (u32 i = 0; i < LaunchWindow::kMost + kMore; ++i) window.add(launch_at(i), stream);
  EXPECT_EQ(window.size(), LaunchWindow::kMost);
  EXPECT_EQ(window.forgotten(), kMore);
  EXPECT_EQ(window.oldest(), kMore);
}

TEST(LaunchWindow, StaysSmallWithoutDeviceRecords) {
  LaunchWindow window(1);
  const u32 stream = window.streams().find({});
  for (u32 i = 0; i < LaunchWindow::kLeast * 3; ++i) window.add(launch_at(i), stream);
  EXPECT_EQ(window.size(), LaunchWindow::kLeast);
  EXPECT_EQ(window.forgotten(), 0u);
}

// A stamp may be anything: a gap of centuries is not kept in pieces of seconds.
TEST(ActivityLog, AGapOfCenturiesEndsIt) {
  ActivityLog log;
  log.add(0, 10'000'000'000, Activity::Host);
  log.add(10'000'000'000, std::numeric_limits<Nanos>::max(), Activity::Launch);
  log.add(20'000'000'000, 21'000'000'000, Activity::Kernel);
  const Activities made = log.finish();
  EXPECT_EQ(made.spans.size(), 3u);  // ten seconds
  EXPECT_TRUE(made.covers(0, 10'000'000'000));
  EXPECT_FALSE(made.covers(0, 10'000'000'001));
}

}  // namespace
}  // namespace gputrace
