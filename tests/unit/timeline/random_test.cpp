// Random and long programs, joined and measured as a reference says, with records late, reordered and lost too.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

struct Launched {
  u32 thread, stream, function, correlation;
  Nanos begin, end, start, finish;
  u64 gap;
};
struct Program {
  std::vector<Launched> launches;  // in the order of their calls
  Nanos last = 0;
};

// Threads launch on streams; each stream runs its kernels one after the other, as soon as the call is 5 us old.
Program random_program(std::mt19937_64& random, u32 threads, u32 streams, u32 functions, u32 count) {
  Program program;
  std::vector<Nanos> free_at(threads, 10'000), stream_end(streams, 0);
  for (u32 i = 0; i < count; ++i) {
    Launched made{};
    made.thread = static_cast<u32>(std::min_element(free_at.begin(), free_at.end()) - free_at.begin());
    made.stream = static_cast<u32>(random() % streams);
    made.function = static_cast<u32>(random() % functions);
    made.correlation = 100 + i * 3;
    made.begin = free_at[made.thread] + static_cast<Nanos>(random() % 3000);
    made.end = made.begin + 800 + static_cast<Nanos>(random() % 4000);
    free_at[made.thread] = made.end + 20;
    program.launches.push_back(made);
  }
  std::sort(program.launches.begin(), program.launches.end(),
            [](const auto& a, const auto& b) { return a.end < b.end; });
  for (Launched& made : program.launches) {
    const Nanos before = stream_end[made.stream];
    made.start = std::max(before, made.begin + 5000) + static_cast<Nanos>(random() % 700);
    made.finish = made.start + 1 + static_cast<Nanos>(random() % 9000);
    const Nanos ready = std::max(made.end, before);
    made.gap = made.start > ready ? static_cast<u64>(made.start - ready) : 0;
    stream_end[made.stream] = made.finish;
    program.last = std::max(program.last, made.finish);
  }
  return program;
}

struct Loss {
  unsigned kernel_percent = 0, key_percent = 0;
  std::size_t shuffle = 0;  // records change places over that many
};

void write(DeviceBuilder& trace, const Program& program, u32 threads, u32 functions, Loss loss, std::mt19937_64& random,
           std::vector<bool>& delivered, std::vector<bool>& keyed) {
  std::vector<u64> names;
  for (u32 f = 0; f < functions; ++f) {
    names.push_back(trace.text("k" + std::to_string(f)));
    trace.name_function(0xf00 + f, "k" + std::to_string(f), 0xa0);
  }
  std::vector<Thread> lanes;
  for (u32 t = 0; t < threads; ++t) lanes.push_back(trace.thread(static_cast<i32>(100 + t)));
  for (u32 s = 0; s < 8; ++s) {
    trace.stream(0x500 + s, 20 + s);
    trace.independent(0x500 + s);
  }
  trace.reading(5000);
  std::vector<std::size_t> order(program.launches.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Launched& each = program.launches[i];
    trace.launch(lanes[each.thread], 0xf00 + each.function, each.begin, each.end, 0x500 + each.stream);
    delivered.push_back(random() % 100 >= loss.kernel_percent);
    keyed.push_back(random() % 100 >= loss.key_percent);
    order[i] = i;
  }
  for (std::size_t i = 0; loss.shuffle > 1 && i + 1 < order.size(); ++i)
    std::swap(order[i], order[std::min(order.size() - 1, i + random() % loss.shuffle)]);
  const Nanos handled = program.last + 10'000;
  for (const std::size_t i : order) {
    const Launched& each = program.launches[i];
    const i32 tid = static_cast<i32>(100 + each.thread);
    if (keyed[i]) trace.key(tid, each.correlation, each.begin + 100, each.end - 100, handled);
    if (delivered[i])
      trace.kernel(each.correlation, names[each.function], each.start, each.finish, handled, 20 + each.stream);
  }
  trace.reading(handled + 1000);
}

TEST(Timeline, RandomProgramsAreJoinedAndMeasuredAsTheReferenceSays) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    const u32 threads = 1 + static_cast<u32>(random() % 4), streams = 1 + static_cast<u32>(random() % 6), functions = 3;
    const Program program = random_program(random, threads, streams, functions, 400);
    DeviceBuilder trace(seed % 2 ? 0 : 987'654'321);
    std::vector<bool> delivered, keyed;
    Loss loss;
    loss.shuffle = seed % 3 ? 100 : 0;
    write(trace, program, threads, functions, loss, random, delivered, keyed);
    const ProcessTrace process = trace.load();
    EXPECT_EQ(process.device.join.by_key, 400u) << "seed " << seed;
    EXPECT_EQ(process.device.join.late, 0u);
    for (u32 f = 0; f < functions; ++f) {
      u64 latency = 0, queue = 0, gap = 0, short_kernels = 0, total = 0;
      for (const Launched& each : program.launches) {
        if (each.function != f) continue;
        latency += static_cast<u64>(each.start - each.begin);
        queue += static_cast<u64>(std::max<Nanos>(0, each.start - each.end));
        gap += each.gap;
        short_kernels += each.finish - each.start < each.end - each.begin;
        total += static_cast<u64>(each.finish - each.start);
      }
      const Function& known = function(process, "k" + std::to_string(f));
      EXPECT_EQ(known.waits.latency.sum(), latency) << "seed " << seed;
      EXPECT_EQ(known.waits.queue_ns, queue);
      EXPECT_EQ(known.waits.gap_ns, gap) << "seed " << seed;
      EXPECT_EQ(known.waits.short_kernels, short_kernels);
      u64 measured = 0;
      for (const KernelLaunches& group : process.kernels) {
        if (process.functions[group.shape.function].symbol == known.symbol) measured += group.times.durations.sum();
      }
      EXPECT_EQ(measured, total);
    }
    u64 in_streams = 0;
    for (const StreamTimes& stream : process.device.streams) in_streams += stream.operations;
    EXPECT_EQ(in_streams, 400u);
  }
}

// An operation belongs to the window in which it starts: any cuts end, and their parts add up to the whole.
TEST(Timeline, WindowsOfRandomProgramsAddUpToTheWhole) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed * 31);
    const u32 streams = 1 + static_cast<u32>(random() % 6);
    const Program program = random_program(random, 3, streams, 2, 300);
    DeviceBuilder trace;
    std::vector<bool> delivered, keyed;
    write(trace, program, 3, 2, {}, random, delivered, keyed);
    std::vector<Nanos> cuts{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()};
    for (u64 i = random() % 6; i > 0; --i)
      cuts.push_back(static_cast<Nanos>(random() % static_cast<u64>(program.last + 2000)));
    std::sort(cuts.begin(), cuts.end());
    const ProcessTrace whole = trace.load();
    u64 operations = 0, kernels = 0, nanos = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const TimeWindow window{cuts[i], cuts[i + 1]};
      const ProcessTrace part = trace.load(window);
      const auto started = std::count_if(program.launches.begin(), program.launches.end(),
                                         [&](const Launched& each) { return window.holds(each.start); });
      u64 here = 0;
      for (const StreamTimes& stream : part.device.streams) here += stream.operations;
      EXPECT_EQ(here, static_cast<u64>(started)) << "seed " << seed << " window " << i;
      operations += here;
      for (const DeviceTimes& device : part.device.devices) kernels += device.kernels;
      for (const KernelLaunches& group : part.kernels) nanos += group.times.durations.sum();
    }
    EXPECT_EQ(operations, 300u) << "seed " << seed;
    EXPECT_EQ(kernels, 300u) << "seed " << seed;
    u64 all = 0;
    for (const KernelLaunches& group : whole.kernels) all += group.times.durations.sum();
    EXPECT_EQ(nanos, all) << "seed " << seed;
  }
}

TEST(Timeline, LostRecordsAndKeysNeverGiveAWrongJoin) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed * 77);
    // Every launch has a function of its own, so that a wrong join shows.
    const u32 count = 150;
    Program program = random_program(random, 3, 4, 1, count);
    for (u32 i = 0; i < count; ++i) program.launches[i].function = i;
    DeviceBuilder trace;
    std::vector<bool> delivered, keyed;
    write(trace, program, 3, count, {20, seed % 2 ? 100u : 30u, 20}, random, delivered, keyed);
    const ProcessTrace process = trace.load();
    const u64 arrived = static_cast<u64>(std::count(delivered.begin(), delivered.end(), true));
    EXPECT_EQ(process.device.join.operations, arrived);
    EXPECT_EQ(process.device.join.by_key + process.device.join.by_order, arrived) << "seed " << seed;
    EXPECT_EQ(process.device.join.calls_unanswered, count - arrived);
    for (u32 i = 0; i < count; ++i) {
      const LaunchTimes& waits = function(process, "k" + std::to_string(i)).waits;
      const Launched& each = program.launches[i];
      EXPECT_EQ(waits.latency.sum(), delivered[i] ? static_cast<u64>(each.start - each.begin) : 0) << "seed " << seed;
    }
  }
}

// With records lost, what is called idle is idle, and the rest of the time between operations is unknown.
TEST(Timeline, AGapBesideALostRecordIsUnknownAndNotIdle) {
  u64 unknown = 0, idle = 0;
  for (u64 seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed * 53);
    const u32 streams = 1 + static_cast<u32>(random() % 4);
    const Program program = random_program(random, 1, streams, 2, 200);
    DeviceBuilder trace;
    std::vector<bool> delivered, keyed;
    write(trace, program, 1, 2, {static_cast<unsigned>(seed * 3), 0, seed % 2 ? 20u : 0u}, random, delivered, keyed);
    const ProcessTrace process = trace.load();
    ASSERT_EQ(process.device.devices.size(), 1u);
    const DeviceTimes& device = process.device.devices[0];
    EXPECT_EQ(device.busy_ns + device.idle_ns + device.unknown_ns, device.span_ns()) << "seed " << seed;
    EXPECT_EQ(device.longest.size(), device.gaps);
    for (const IdleGap& gap : device.longest) {
      for (const Launched& each : program.launches)
        EXPECT_FALSE(each.start < gap.end && each.finish > gap.begin) << "seed " << seed << " " << each.start;
    }
    const bool any_lost = std::find(delivered.begin(), delivered.end(), false) != delivered.end();
    EXPECT_TRUE(any_lost || device.unknown_gaps == 0);
    unknown += device.unknown_gaps, idle += device.gaps;
  }
  EXPECT_GT(unknown, 100u);
  EXPECT_GT(idle, 100u);
}

// More gaps than are held at a time, and a stream whose last record never comes.
TEST(Timeline, GapsBeforeALossStayIdleHoweverManyThereAre) {
  constexpr u32 kLaunches = 70'000;
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "step", 0xa0);
  const u64 step = trace.text("step");
  trace.stream(0x501, 8);
  trace.independent(0x501);
  trace.reading(500);
  constexpr Nanos kLost = 1000 * 69'000 + 350;
  for (u32 i = 0; i < kLaunches; ++i) {
    const Nanos begin = 1000 * static_cast<Nanos>(i + 1);
    trace.launch(main, 0xf1, begin, begin + 100);
    trace.key(100, 10 + i, begin + 10, begin + 90, begin + 900);
    trace.kernel(10 + i, step, begin + 200, begin + 700, begin + 900);
    if (begin + 350 == kLost) trace.launch(main, 0xf1, begin + 350, begin + 400, 0x501);
    if (i % 500 == 499) trace.reading(begin + 910);
  }
  trace.reading(1000ll * kLaunches + 5000);
  const ProcessTrace process = trace.load();
  const DeviceTimes& device = process.device.devices.at(0);
  EXPECT_EQ(device.gaps, 68'999u);
  EXPECT_EQ(device.unknown_gaps, 1000u);
  EXPECT_EQ(device.idle_ns, 68'999u * 500);
  EXPECT_EQ(device.unknown_ns, 1000u * 500);
}

// Long enough for the timeline to run on its thread, behind the pass: functions that are named, and kernels that nobody
// launched, all the way through make the two wait for each other.
TEST(Timeline, ALongProgramIsCountedExactlyWhileNewKernelsComeUp) {
  constexpr u32 kLaunches = 24'000, kPerFunction = 6000, kStrangers = 3000;
  DeviceBuilder trace;
  const Thread threads[] = {trace.thread(100), trace.thread(101)};
  trace.reading(500);
  std::vector<u64> names;
  u64 expected[kLaunches / kPerFunction] = {}, unlaunched = 0;
  for (u32 i = 0; i < kLaunches; ++i) {
    const Nanos begin = 10'000 + 1000 * static_cast<Nanos>(i);
    const u32 which = i / kPerFunction;
    if (i % kPerFunction == 0) {
      names.push_back(trace.text("k" + std::to_string(which)));
      trace.name_function(0xf00 + which, "k" + std::to_string(which), 0xa0, begin - 10);
    }
    trace.launch(threads[i % 2], 0xf00 + which, begin, begin + 300);
    trace.key(100 + static_cast<i32>(i % 2), 10 + i, begin + 10, begin + 290, begin + 5000);
    const Nanos length = 1 + i * 7919 % 600;
    trace.kernel(10 + i, names[which], begin + 900, begin + 900 + length, begin + 5000);
    expected[which] += static_cast<u64>(length);
    if (i % kStrangers == 0) {
      trace.kernel(0, trace.text("stranger"), begin + 900 + length, begin + 900 + length + 5, begin + 5000, 8, i + 1);
      ++unlaunched;
    }
    if (i % 500 == 499) trace.reading(begin + 6000);
  }
  trace.reading(kLaunches * 1000 + 100'000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.plain_launches, kLaunches);
  EXPECT_EQ(process.device.join.by_key, kLaunches);
  EXPECT_EQ(process.device.join.not_joined, unlaunched);
  std::map<std::string, u64> sums, launches;
  for (const KernelLaunches& kernel : process.kernels) {
    const std::string& symbol = process.functions[kernel.shape.function].symbol;
    sums[symbol] += kernel.times.durations.sum();
    launches[symbol] += kernel.plain;
  }
  for (u32 which = 0; which < kLaunches / kPerFunction; ++which) {
    EXPECT_EQ(sums["k" + std::to_string(which)], expected[which]) << which;
    EXPECT_EQ(launches["k" + std::to_string(which)], kPerFunction) << which;
  }
  EXPECT_EQ(sums["stranger"], unlaunched * 5);
  EXPECT_EQ(process.device.devices[0].kernels, kLaunches + unlaunched);
}

}  // namespace
}  // namespace gputrace::test
