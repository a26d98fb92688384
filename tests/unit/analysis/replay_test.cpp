// The replay of a run and what it says of all changes together; what is told of several processes.
#include <random>

#include "analysis/gains/gains.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

constexpr Nanos kReplayedCall = 4 * kUs;
constexpr i64 kReplayedBytes = 1 << 20;

TEST(Replay, WhatIsAddedAndTheFloorSumToTheRun) {
  Planted program;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 6; ++k) program.run(10 * kUs, 15 * kUs, k % 2);
    program.copy_to_device(kReplayedBytes, MemoryKind::Pageable, true);
    program.allocate(30 * kUs);
    program.run(kReplayedCall, 40 * kUs);
    program.fetch();
    program.sleep(50 * kUs);
  }
  const LoadedRun run = program.load();
  const GainFacts& gains = run.processes.at(0).gains;
  u64 added = 0;
  for (const Gain& gain : gains.gains) {
    added += gain.added_ns;
    EXPECT_LE(gain.single_ns, gains.replayed_ns - gains.floor_ns);
  }
  EXPECT_EQ(added + gains.floor_ns, gains.replayed_ns);
  u64 kernels = 0;
  for (const DeviceTimes& device : run.processes.at(0).device.devices) kernels += device.compute_ns;
  EXPECT_GE(gains.floor_ns, kernels);
  const Table overview = overview_report(run);
  EXPECT_EQ(cell(overview, row_with(overview, "metric", text_value("floor_ns")), "value"), number(gains.floor_ns));
}

// Waits that seem to return before what they wait for, and asynchronous copies that seem to be over when their calls return.
TEST(Replay, IsNoOtherWhereClocksDiffer) {
  for (const Nanos off : {-3 * kUs, 25 * kUs}) {
    Planted program;
    for (int i = 0; i < 40; ++i) {
      program.run(kReplayedCall, 60 * kUs);
      program.copy_to_device(kReplayedBytes / 4, MemoryKind::Pinned, true);
      program.copy_to_device(kReplayedBytes / 4, MemoryKind::Pageable, true);
      program.record(0xe1);
      program.poll(0xe1, 20 * kUs);
      program.fetch();
      program.sleep(30 * kUs);
    }
    program.clocks_differ(off);
    const GainFacts gains = program.load().processes.at(0).gains;
    EXPECT_EQ(gains.measured_ns, static_cast<u64>(program.span() + off));
    EXPECT_NEAR(static_cast<double>(gains.replayed_ns), static_cast<double>(gains.measured_ns), 2.0 * kUs) << off;
  }
}

// Wake-ups of half a millisecond, and waits that come just after what they wait for has ended.
TEST(Replay, WaitsThatDidNotWaitAreGivenNoWakeUp) {
  Planted program;
  program.wake_late(500 * kUs);
  for (int i = 0; i < 40; ++i) {
    program.run(kReplayedCall, 60 * kUs);
    program.fetch();
    program.run(kReplayedCall, 60 * kUs);
    program.sleep(70 * kUs);
    program.wait();
  }
  const GainFacts gains = program.load().processes.at(0).gains;
  EXPECT_EQ(gains.replayed_ns, static_cast<u64>(program.span()));
}

// Programs of all that there is, in any order: the replay of what was not changed is the run, and no change makes it longer.
TEST(Replay, OfAnUnchangedRunIsTheRun) {
  for (u32 seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](u32 most) { return static_cast<Nanos>(random() % most); };
    Planted program;
    program.record(0xe1);
    for (int i = 0; i < 60; ++i) {
      const u64 stream = Planted::kStream + random() % 3;
      switch (random() % 14) {
        case 0:
          program.wait(stream);
          break;
        case 1:
          program.sleep(below(100'000));
          break;
        case 2:
          program.copy_to_device(1 + below(2'000'000), random() % 2 ? MemoryKind::Pinned : MemoryKind::Pageable,
                                 random() % 2, stream);
          break;
        case 3:
          program.copy_to_host(1 + below(2'000'000), random() % 2 ? MemoryKind::Pinned : MemoryKind::Pageable,
                               random() % 2, stream);
          break;
        case 4:
          program.record(0xe1, stream);
          break;
        case 5:
          program.await(0xe1, stream);
          break;
        case 6:
          program.wait_for_event(0xe1);
          break;
        case 7:
          program.poll(0xe1, 1 + below(50'000));
          break;
        case 8:
          program.allocate(1 + below(50'000));
          break;
        case 9:
          program.hand_over();
          break;
        case 10:
          program.host_function(below(50'000), stream);
          break;
        default:
          program.run(1'000 + below(20'000), 1 + below(200'000), static_cast<int>(random() % 2), stream);
      }
    }
    program.run(kReplayedCall, 50 * kUs);
    const LoadedRun run = program.load();
    const GainFacts& gains = run.processes.at(0).gains;
    EXPECT_EQ(gains.measured_ns, static_cast<u64>(program.span())) << seed;
    // Of several things at one nanosecond the order is not known.
    EXPECT_NEAR(static_cast<double>(gains.replayed_ns), static_cast<double>(gains.measured_ns), 2.0 * kUs) << seed;
    EXPECT_LE(gains.floor_ns, gains.replayed_ns) << seed;
  }
}

// What a killed program takes with it is the end of its run: the rest of it was as it was. Records that are missing all along are another matter.
TEST(Replay, OfARunWhoseEndIsMissing) {
  const auto gain_of = [](auto&& lost) {
    Planted program;
    for (int i = 0; i < 200; ++i) program.run(4 * kUs, 100 * kUs), program.fetch(), program.sleep(150 * kUs);
    program.lose(lost);
    const LoadedRun run = program.load();
    const GainFacts& gains = run.processes[0].gains;
    return gains.replayed() ? static_cast<double>(gains.of(WhatIf::HostWork).single_ns) : -1;
  };
  const double whole = gain_of([](std::size_t, std::size_t) { return false; });
  EXPECT_NEAR(whole, 199.0 * 150 * kUs, 0.02 * whole);
  const double killed = gain_of([](std::size_t at, std::size_t all) { return at >= all - all / 20; });
  EXPECT_NEAR(killed, 0.95 * whole, 0.02 * whole);
  const double most_of_the_end =
      gain_of([](std::size_t at, std::size_t all) { return at >= all - all / 20 && at % 4; });
  EXPECT_NEAR(most_of_the_end, 0.97 * whole, 0.05 * whole);
  EXPECT_EQ(gain_of([](std::size_t at, std::size_t) { return at % 20 == 5; }), -1) << "all along";
  EXPECT_EQ(gain_of([](std::size_t at, std::size_t all) { return at >= all - all / 5; }), -1) << "a fifth of the run";
}

TEST(Worst, SaysWhoseItIsWhereThereAreSeveralProcesses) {
  LoadedRun run;
  for (const char* rank : {"0", "1", "2"}) run.processes.emplace_back().who.rank = rank;
  const auto judge = [](const ProcessTrace& process) -> std::optional<Finding> {
    if (process.who.rank == "0") return {};
    Finding finding;
    finding.text = "it waits";
    finding.gain_ns = process.who.rank == "1" ? 7 : 5;
    return finding;
  };
  std::vector<Finding> found;
  add_worst(run, found, judge);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "rank 1, worst of 2: it waits");
  run.processes.pop_back();
  add_worst(run, found, judge);
  EXPECT_EQ(found.back().text, "rank 1: it waits");
  add_worst(run, found, [](const ProcessTrace& process) -> std::optional<Finding> {
    Finding finding;
    finding.text = "rank " + process.who.rank + " waits";
    return finding;
  });
  EXPECT_EQ(found.back().text, "rank 0 waits");
  run.processes.erase(run.processes.begin());
  add_worst(run, found, judge);
  EXPECT_EQ(found.back().text, "it waits");
}

}  // namespace
}  // namespace gputrace::test
