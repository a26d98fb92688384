// What changes would bring to a program whose threads launch at the same time: of calls that overlap nobody knows which one the driver took first.
#include <gtest/gtest.h>

#include "analysis/gains/gains.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

constexpr Nanos kWork = 180 * kUs;
constexpr int kTurns = 60;

// Two threads give a stream a kernel of 10 us each, in calls that overlap: one is held up for 20 us, and the kernel of the other's call, which
// came later and ended earlier, runs before or after its own. Between two turns both work for 180 us.
LoadedRun two_threads_at_once(Nanos work) {
  constexpr Nanos kKernel = 10 * kUs;
  DeviceBuilder trace;
  const auto first = trace.thread(100), second = trace.thread(101);
  trace.name_function(0xf1, "relu_kernel", 0xa0);
  const u64 name = trace.text("relu_kernel");
  trace.independent(0xc5);
  trace.reading(kUs);
  struct Ran {
    i32 tid;
    Nanos begin, end, start;
  };
  std::vector<Ran> ran;
  Nanos now = 1000 * kUs;
  for (int i = 0; i < kTurns; ++i) {
    const bool is_overtaken = i % 2 == 0;
    const Nanos early = now + 12 * kUs, late = early + kKernel + kUs;
    ran.push_back({100, now, now + 20 * kUs, is_overtaken ? late : early});
    ran.push_back({101, now + 5 * kUs, now + 9 * kUs, is_overtaken ? early : late});
    now += 20 * kUs + work;
  }
  for (const Ran& each : ran) trace.launch(each.tid == 100 ? first : second, 0xf1, each.begin, each.end, 0xc5);
  const Nanos end = now + kUs;
  u32 correlation = 0;
  for (const Ran& each : ran) trace.key(each.tid, ++correlation, each.begin, each.end, end);
  correlation = 0;
  for (const Ran& each : ran) trace.kernel(++correlation, name, each.start, each.start + kKernel, end);
  trace.reading(end + kUs);
  return trace.load_all();
}

TEST(GainsOfThreads, WorkBetweenCallsThatOverlap) {
  const LoadedRun run = two_threads_at_once(kWork);
  const GainFacts& gains = run.processes.at(0).gains;
  ASSERT_TRUE(gains.replayed()) << gains.why_not;
  EXPECT_EQ(gains.replayed_ns, gains.measured_ns);
  const double real = static_cast<double>((kTurns - 1) * kWork);
  EXPECT_NEAR(static_cast<double>(gains.of(WhatIf::HostWork).single_ns), real, 0.1 * real);
}

// Where there is no such work the kernels keep the device busy, and nothing is promised.
TEST(GainsOfThreads, NothingIsPromisedWhereTheyDoNotWork) {
  const LoadedRun run = two_threads_at_once(2 * kUs);
  const GainFacts& gains = run.processes.at(0).gains;
  ASSERT_TRUE(gains.replayed()) << gains.why_not;
  EXPECT_EQ(gains.replayed_ns, gains.measured_ns);
  EXPECT_LE(gains.of(WhatIf::HostWork).single_ns, static_cast<u64>(kTurns * 5 * kUs));
}

}  // namespace
}  // namespace gputrace::test
