// Ticks → nanoseconds: exact on a steady clock, monotone and within the stated bound on a drifting one, indifferent to
// bad anchors.
#include "trace/clock_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gputrace {
namespace {

// A 3 GHz clock that drifts by up to 50 ppm and back over minutes.
u64 true_ticks(Nanos ns) {
  const double seconds = static_cast<double>(ns) * 1e-9;
  return static_cast<u64>(3.0 * static_cast<double>(ns) + 3e9 * 50e-6 * 20 * (1 - std::cos(seconds / 20)) + 1e12);
}

TEST(ClockMap, IsExactOnASteadyClock) {
  const ClockMap map(ClockKind::Tsc,
                     {{3'000'000, 1'000'000, 5'000'000, 0}, {6'000'000'000, 2'000'000'000, 2'004'000'000, 0}});
  EXPECT_EQ(map.nanos(3'000'000), 1'000'000);
  EXPECT_EQ(map.nanos(3'003'000), 1'001'000);
  EXPECT_EQ(map.nanos(6'000'000'000), 2'000'000'000);
  EXPECT_EQ(map.nanos(9'000'000'000), 3'000'000'000);
  EXPECT_EQ(map.nanos(3'000), 1'000);
  EXPECT_EQ(map.realtime(1'500'000), 5'500'000);
  EXPECT_EQ(map.error_ns(4'000'000), 1);
}

TEST(ClockMap, StaysWithinItsBoundAndNeverDecreases) {
  std::mt19937_64 random(3);
  std::vector<Anchor> anchors;
  for (Nanos t = 0; t <= 120'000'000'000; t += 1'000'000'000) {
    const Nanos width = 40 + static_cast<Nanos>(random() % 60);
    const Nanos off = static_cast<Nanos>(random() % static_cast<u64>(width)) - width / 2;
    anchors.push_back({true_ticks(t), t + off, 1'700'000'000'000'000'000 + t, width});
  }
  anchors[30].monotonic_ns += 3'000'000;  // the sidecar was kept from running: wide, and off
  anchors[30].width_ns = 8'000'000;
  std::shuffle(anchors.begin(), anchors.end(), random);
  const ClockMap map(ClockKind::Tsc, anchors);
  EXPECT_EQ(map.anchors().size(), 120u);
  Nanos before = -1, worst = 0;
  for (Nanos t = 0; t < 120'000'000'000; t += 7'777'777) {
    const u64 ticks = true_ticks(t);
    const Nanos got = map.nanos(ticks);
    ASSERT_GE(got, before);
    before = got;
    worst = std::max(worst, std::abs(got - t));
  }
  EXPECT_LT(worst, 6000) << "bound of the drift within one second";
  EXPECT_GE(map.error_ns(true_ticks(5'500'000'000)), 20);
  EXPECT_GT(map.error_ns(true_ticks(400'000'000'000)), map.error_ns(true_ticks(60'000'000'000)));
}

TEST(ClockMap, WithoutAnchorsItSaysSo) {
  const ClockMap none(ClockKind::Tsc, {});
  EXPECT_FALSE(none.known());
  EXPECT_EQ(none.error_ns(5), -1);
  EXPECT_EQ(none.realtime(5), 0);
  const ClockMap monotonic(ClockKind::Monotonic, {});
  EXPECT_TRUE(monotonic.known());
  EXPECT_EQ(monotonic.nanos(12345), 12345);
  EXPECT_EQ(monotonic.error_ns(12345), 0);
}

TEST(ClockMap, SurvivesHostileAnchors) {
  std::mt19937_64 random(9);
  for (u32 round = 0; round < 2000; ++round) {
    std::vector<Anchor> anchors(random() % 6);
    for (Anchor& anchor : anchors) {
      anchor = {random() >> (random() % 64), static_cast<Nanos>(random() >> (random() % 64)),
                static_cast<Nanos>(random()), static_cast<Nanos>(random() >> (random() % 64))};
    }
    const ClockMap map(ClockKind::Tsc, anchors);
    Nanos before = INT64_MIN;
    for (int shift = 0; shift < 64; ++shift) {
      const Nanos at = map.nanos(1ull << shift);
      ASSERT_GE(at, before);
      before = at;
      map.error_ns(1ull << shift);
      map.max_error_ns(0, 1ull << shift);
    }
  }
}

}  // namespace
}  // namespace gputrace
