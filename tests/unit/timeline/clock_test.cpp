// The device's clock on the host's: constant, drifting, noisy, jumping, set back.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/timeline/device_clock.h"

namespace gputrace {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kEvery = 100'000'000;

TEST(DeviceClock, AClockThatRunsAsOursIsShiftedAndLengthsStay) {
  std::mt19937_64 random(1);
  DeviceTimeline clock;
  const Nanos offset = 1'700'000'000'000'000'123;
  for (int i = 0; i < 50; ++i) {
    const Nanos at = kSecond + i * kEvery;
    const Nanos before = at - static_cast<Nanos>(random() % 400), after = at + 1 + static_cast<Nanos>(random() % 400);
    clock.add(static_cast<u64>(at + offset), before, after);
  }
  EXPECT_EQ(clock.steps(), 0u);
  EXPECT_LE(clock.error(), 800);
  for (int i = 0; i < 2000; ++i) {
    const Nanos at = kSecond + static_cast<Nanos>(random() % (49 * kEvery));
    const u64 device = static_cast<u64>(at + offset);
    EXPECT_LE(std::abs(clock.nanos(device, 100 * kSecond) - at), clock.error());
    EXPECT_EQ(clock.length(device, device + 12345), 12345);
  }
}

// The first reading was held up after it was taken.
TEST(DeviceClock, LengthsStayWhereTheFirstReadingIsWide) {
  DeviceTimeline clock;
  const auto device = [](Nanos at) { return static_cast<u64>(at + 77 * kSecond); };
  clock.add(device(kSecond), kSecond - 100, kSecond + 3000);
  clock.add(device(kSecond + 2'000'000), kSecond + 2'000'000 - 100, kSecond + 2'000'000 + 100);
  const auto at = [&](Nanos time) { return clock.nanos(device(time), 100 * kSecond); };
  EXPECT_EQ(at(kSecond + 1'900'000) - at(kSecond), 1'900'000);
  EXPECT_LE(std::abs(at(kSecond) - kSecond), clock.error_here());
}

TEST(DeviceClock, OurOwnClockIsTakenAsItIs) {
  DeviceTimeline clock;
  for (int i = 0; i < 20; ++i) {
    const Nanos at = kSecond + i * kEvery;
    clock.add(static_cast<u64>(at), at - 700, at + 90);
  }
  EXPECT_EQ(clock.nanos(1'234'567'891, 5 * kSecond), 1'234'567'891);
  EXPECT_EQ(clock.nanos(2 * kSecond + 7, 5 * kSecond), 2 * kSecond + 7);
}

TEST(DeviceClock, AHostClockThatTheDeviceUsesIsTakenFromTheHost) {
  DeviceTimeline clock;
  const Nanos offset = 555'000'000'000;
  for (int i = 0; i < 20; ++i) {
    const Nanos at = kSecond + i * kEvery;
    clock.add(static_cast<u64>(at + offset), at - 700, at + 90, at);
  }
  EXPECT_EQ(clock.nanos(static_cast<u64>(2 * kSecond + 7 + offset), 5 * kSecond), 2 * kSecond + 7);
}

TEST(DeviceClock, DriftAndNoiseStayWithinTheBound) {
  for (const double rate : {1 + 1e-4, 1 - 1e-4}) {
    std::mt19937_64 random(7);
    const auto device = [&](Nanos at) {  // 100 ppm and 1 us of noise
      return static_cast<u64>(5'000'000'000 + std::llround(static_cast<double>(at) * rate) +
                              static_cast<Nanos>(random() % 2001) - 1000);
    };
    DeviceTimeline clock;
    for (Nanos at = kSecond; at < 30 * kSecond; at += kEvery) {
      clock.add(device(at), at - 200 - static_cast<Nanos>(random() % 300),
                at + 200 + static_cast<Nanos>(random() % 300));
    }
    EXPECT_EQ(clock.steps(), 0u);
    EXPECT_EQ(clock.restarts(), 0u);
    Nanos worst = 0;
    for (int i = 0; i < 5000; ++i) {
      const Nanos at = kSecond + static_cast<Nanos>(random() % (28 * kSecond));
      worst = std::max(worst, std::abs(clock.nanos(device(at), 100 * kSecond) - at));
    }
    EXPECT_LE(worst, clock.error() + 1000) << "beyond the noise of the time itself";
    EXPECT_LE(clock.error(), 5000);
    EXPECT_NEAR(static_cast<double>(clock.length(10'000'000'000, 11'000'000'000)), 1e9 / rate, 2e4);
  }
}

// 40 us between two readings are no more than 400 ppm: the reading after them tells a jump from a drift.
TEST(DeviceClock, ASmallJumpInAShortRunIsFoundAndStated) {
  for (const Nanos step : {30'000, 40'000, 50'000}) {
    for (const Nanos at_step : {kSecond + 30'000'000, kSecond + 2 * kEvery + 70'000'000}) {
      DeviceTimeline clock;
      const auto device = [&](Nanos at) { return static_cast<u64>(at + 77 * kSecond + (at >= at_step ? step : 0)); };
      for (Nanos at = kSecond; at < kSecond + 5 * kEvery; at += kEvery) clock.add(device(at), at - 300, at + 300);
      EXPECT_EQ(clock.steps(), 1u) << step;
      EXPECT_NEAR(static_cast<double>(clock.largest_step()), static_cast<double>(step), 1500);
      EXPECT_LE(clock.error(), 3000);
      for (Nanos at = kSecond; at < kSecond + 4 * kEvery; at += 999'983) {
        const Nanos off = std::abs(clock.nanos(device(at), 100 * kSecond) - at);
        EXPECT_LE(off, clock.error_here()) << at;
      }
    }
  }
}

// With the last reading nothing tells any more: the bound has both.
TEST(DeviceClock, ASmallJumpBeforeTheLastReadingIsInTheBound) {
  DeviceTimeline clock;
  const auto device = [](Nanos at) { return static_cast<u64>(at + (at >= kSecond + 50'000'000 ? 40'000 : 0)); };
  clock.add(device(kSecond), kSecond - 300, kSecond + 300);
  clock.add(device(kSecond + kEvery), kSecond + kEvery - 300, kSecond + kEvery + 300);
  EXPECT_EQ(clock.steps(), 0u);
  for (Nanos at = kSecond; at < kSecond + kEvery; at += 999'983)
    EXPECT_LE(std::abs(clock.nanos(device(at), 100 * kSecond) - at), clock.error()) << at;
}

// Nor does one that follows so soon that a wrong rate has not yet led it astray.
TEST(DeviceClock, ASmallJumpBeforeTwoReadingsInARowIsInTheBound) {
  DeviceTimeline clock;
  const auto device = [](Nanos at) { return static_cast<u64>(at + (at >= kSecond + 150'000'000 ? 40'000 : 0)); };
  for (const Nanos at : {kSecond, kSecond + kEvery, kSecond + 2 * kEvery, kSecond + 2 * kEvery + 300'000})
    clock.add(device(at), at - 300, at + 300);
  EXPECT_EQ(clock.steps(), 0u);
  for (Nanos at = kSecond; at < kSecond + 2 * kEvery; at += 999'983)
    EXPECT_LE(std::abs(clock.nanos(device(at), 100 * kSecond) - at), clock.error()) << at;
  const Nanos later = kSecond + 3 * kEvery;  // it tells
  clock.add(device(later), later - 300, later + 300);
  EXPECT_EQ(clock.steps(), 1u);
  EXPECT_NEAR(static_cast<double>(clock.largest_step()), 40'000, 1500);
}

// Where a reading lies in its window: two in a row that differ by some ns do not choose between the two.
TEST(DeviceClock, ReadingsInARowThatDifferByNanosecondsSettleNothing) {
  for (const Nanos differs : {-400, -20, -4, 0, 3, 20, 400}) {
    DeviceTimeline clock;
    const auto device = [&](Nanos at) {
      return static_cast<u64>(at + (at >= kSecond + 150'000'000 ? 40'000 : 0) +
                              (at > kSecond + 2 * kEvery ? differs : 0));
    };
    for (const Nanos at : {kSecond, kSecond + kEvery, kSecond + 2 * kEvery, kSecond + 2 * kEvery + 33'000})
      clock.add(device(at), at - 22, at + 23);
    EXPECT_EQ(clock.steps(), 0u) << differs;
    for (Nanos at = kSecond; at < kSecond + 2 * kEvery; at += 999'983)
      EXPECT_LE(std::abs(clock.nanos(device(at), 100 * kSecond) - at), clock.error()) << at << " " << differs;
    for (const Nanos later : {kSecond + 3 * kEvery, kSecond + 4 * kEvery})
      clock.add(device(later), later - 22, later + 23);
    EXPECT_EQ(clock.steps(), 1u) << differs;
    EXPECT_NEAR(static_cast<double>(clock.largest_step()), 40'000, 1500) << differs;
    EXPECT_LE(clock.error(), 3000) << differs;
  }
}

// Nor do they make a third rate: a clock that does run at another one is found to, by the reading after them.
TEST(DeviceClock, ReadingsInARowWithinADoubtMakeNoThirdRate) {
  for (const Nanos differs : {-400, 400}) {
    DeviceTimeline clock;
    const auto device = [&](Nanos at) {
      const Nanos drifts = at - (kSecond + kEvery);
      return static_cast<u64>(at + (drifts > 0 ? drifts / 2500 : 0) +
                              (at == kSecond + 2 * kEvery + 33'000 ? differs : 0));
    };
    for (const Nanos at : {kSecond, kSecond + kEvery, kSecond + 2 * kEvery, kSecond + 2 * kEvery + 33'000,
                           kSecond + 3 * kEvery, kSecond + 4 * kEvery})
      clock.add(device(at), at - 22, at + 23);
    EXPECT_EQ(clock.steps(), 0u) << differs;
    for (Nanos at = kSecond; at < kSecond + 4 * kEvery; at += 999'983)
      EXPECT_LE(std::abs(clock.nanos(device(at), 100 * kSecond) - at), clock.error()) << at << " " << differs;
  }
}

TEST(DeviceClock, AJumpIsCountedAndWidensTheBoundThereOnly) {
  DeviceTimeline clock;
  const auto device = [](Nanos at) { return static_cast<u64>(at + (at >= 2 * kSecond + 50'000'000 ? 1'000'000 : 0)); };
  for (Nanos at = kSecond; at <= 4 * kSecond; at += kEvery) clock.add(device(at), at - 100, at + 100);
  EXPECT_EQ(clock.steps(), 1u);
  EXPECT_NEAR(static_cast<double>(clock.largest_step()), 1e6, 1000);
  for (Nanos at = kSecond; at <= 4 * kSecond; at += 1'234'567) {
    const Nanos error = std::abs(clock.nanos(device(at), 10 * kSecond) - at);
    EXPECT_LE(error, clock.error_here());
    if (at < 2 * kSecond || at > 2 * kSecond + kEvery) {
      EXPECT_LE(error, 200);
    }
  }
  EXPECT_EQ(clock.length(device(2 * kSecond), device(2 * kSecond) + 5000), 5000);
}

TEST(DeviceClock, AClockThatIsSetBackIsReadByWhenTheRecordWasHandled) {
  DeviceTimeline clock;
  for (Nanos at = kSecond; at < 2 * kSecond; at += kEvery)
    clock.add(static_cast<u64>(at + 9 * kSecond), at - 50, at + 50);
  for (Nanos at = 2 * kSecond; at < 4 * kSecond; at += kEvery)
    clock.add(static_cast<u64>(at + 8 * kSecond), at - 50, at + 50);
  EXPECT_EQ(clock.restarts(), 1u);
  // 10.5 s stood for 1.5 s, and again for 2.5 s.
  EXPECT_NEAR(static_cast<double>(clock.nanos(10'500'000'000, 1'600'000'000)), 1.5e9, 60);
  EXPECT_NEAR(static_cast<double>(clock.nanos(10'500'000'000, 3 * kSecond)), 2.5e9, 60);
  EXPECT_NEAR(static_cast<double>(clock.nanos(11'500'000'000, 4 * kSecond)), 3.5e9, 60);
}

TEST(DeviceClock, BetweenTheReadingsAroundASetbackTheTimeOfHandlingTellsTheSide) {
  DeviceTimeline clock;  // set back by 1 s at 2.05 s, between two readings
  for (Nanos at = kSecond; at <= 2 * kSecond; at += kEvery)
    clock.add(static_cast<u64>(at + 9 * kSecond), at - 50, at + 50);
  for (Nanos at = 2 * kSecond + kEvery; at < 4 * kSecond; at += kEvery)
    clock.add(static_cast<u64>(at + 8 * kSecond), at - 50, at + 50);
  EXPECT_NEAR(static_cast<double>(clock.nanos(10'070'000'000, 2'200'000'000)), 2.07e9, 60);
  EXPECT_NEAR(static_cast<double>(clock.nanos(11'030'000'000, 2'200'000'000)), 2.03e9, 60);
}

TEST(DeviceClock, AClientsClockIsReadInItsOwnUnit) {
  std::mt19937_64 random(7);
  for (const double ticks : {2.6, 1.0, 0.024}) {
    DeviceTimeline clock;
    const u64 first = 1ull << 50;
    const auto device = [&](Nanos at) {
      return first + static_cast<u64>(std::llround(static_cast<double>(at - 10 * kSecond) * ticks));
    };
    const Nanos offset = 1'700'000'000'000'000'000;
    const auto read = [&](Nanos at, bool foreign) {
      const Nanos before = at - static_cast<Nanos>(random() % 800), after = at + 1 + static_cast<Nanos>(random() % 800);
      clock.add(foreign ? device(at) : static_cast<u64>(at + offset), before, after, 0, foreign);
    };
    for (int i = 0; i < 20; ++i) read(kSecond + i * kEvery, false);
    read(10 * kSecond, true);
    clock.nanos(device(10 * kSecond + 5), 20 * kSecond);
    EXPECT_FALSE(clock.sure_here()) << "one reading has no unit";
    for (int i = 1; i < 40; ++i) read(10 * kSecond + i * kEvery, true);
    for (int i = 0; i < 20; ++i) read(15 * kSecond + i * kEvery, false);
    EXPECT_EQ(clock.steps(), 0u) << ticks;
    EXPECT_EQ(clock.restarts(), 0u) << ticks;
    EXPECT_LE(clock.error(), 5000) << ticks;
    for (int i = 0; i < 1000; ++i) {
      const Nanos at = kSecond + static_cast<Nanos>(random() % (19 * kEvery));
      EXPECT_LE(std::abs(clock.nanos(static_cast<u64>(at + offset), at + kEvery) - at), clock.error());
      EXPECT_TRUE(clock.sure_here());
      const Nanos theirs = 10 * kSecond + static_cast<Nanos>(random() % (39 * kEvery));
      EXPECT_LE(std::abs(clock.nanos(device(theirs), theirs + kEvery) - theirs), clock.error() + 50) << ticks;
      EXPECT_TRUE(clock.sure_here());
      EXPECT_NEAR(clock.length(device(theirs), device(theirs + 1'000'000)), 1'000'000, 100) << ticks;
      const Nanos later = 15 * kSecond + static_cast<Nanos>(random() % (19 * kEvery));
      EXPECT_LE(std::abs(clock.nanos(static_cast<u64>(later + offset), later + kEvery) - later), clock.error());
      EXPECT_EQ(clock.length(static_cast<u64>(later + offset), static_cast<u64>(later + offset) + 12345), 12345);
    }
  }
}

TEST(DeviceClock, WithoutReadingsNothingIsKnown) {
  DeviceTimeline clock;
  EXPECT_FALSE(clock.known());
  EXPECT_EQ(clock.error(), -1);
  EXPECT_EQ(clock.length(10, 5), 0);
}

}  // namespace
}  // namespace gputrace
