// What exports are put together from: lanes of a track, numbers of flows, the order of events.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "analysis/events/events.h"
#include "analysis/export/lanes.h"
#include "tests/unit/trace_builder.h"

namespace gputrace::test {
namespace {

TEST(Lanes, WhatCrossesGoesElsewhere) {
  EndLanes ends;  // in the order of ends: inner ones first
  EXPECT_EQ(ends.place(10, 20), 0u);
  EXPECT_EQ(ends.place(22, 30), 0u);
  EXPECT_EQ(ends.place(5, 40), 0u);   // around both
  EXPECT_EQ(ends.place(35, 50), 1u);  // crosses that
  EXPECT_EQ(ends.place(40, 60), 0u);  // begins where it ended
  EXPECT_EQ(ends.place(40, 70), 2u);  // began with that one, which was told first, and crosses 35 to 50
  StartLanes starts;
  EXPECT_EQ(starts.place(0, 10), 0u);
  EXPECT_EQ(starts.place(5, 8), 1u);
  EXPECT_EQ(starts.place(10, 12), 0u);
}

// Calls that end one after the other and never nest stay on the track itself, however many; an outer one over the last of them does too.
TEST(Lanes, LookBackAtManySlices) {
  EndLanes ends;
  for (Nanos at = 0; at < 100'000; ++at) ASSERT_EQ(ends.place(10 * at, 10 * at + 5), 0u);
  EXPECT_EQ(ends.place(1'000'000 - 40'000 - 1, 1'000'001), 0u) << "around 4,000";
  EXPECT_EQ(ends.place(1'000'000 - 40'000 - 3, 1'000'002), 0u) << "around that one";
  EXPECT_EQ(ends.place(1'000'000 - 40'000 - 2, 1'000'003), 1u) << "crosses it";
}

TEST(Flow, HasTheThreadAboveTheTime) {
  const u64 flow = flow_of(6, 123'456'789'012);
  EXPECT_EQ(flow_thread(flow), 7u);
  EXPECT_EQ(flow_time(flow), 123'456'789'012u);
}

class Slices : public EventSink {
 public:
  std::vector<HostSlice> told;

  void begin(const ExportProcess&) override {}
  void ran(const DeviceSlice&) override {}
  void host(const HostSlice& slice) override { told.push_back(slice); }
};

// Two threads with many chunks each; where it is asked for, ranges that begin in the second and end soon after in the first, one of them not at all.
std::vector<HostSlice> slices_of_two_threads(bool ranges) {
  TemporaryDirectory directory;
  TraceBuilder trace;
  const auto first = trace.thread(10), second = trace.thread(11);
  const auto range = [&](TraceBuilder::Thread thread, NvtxAct act, u64 number, Nanos at) {
    trace.add<Nvtx>(thread, "", at, at,
                    [&](auto& r) { r.what = static_cast<u32>(act), r.range = number, r.message = number; });
  };
  if (ranges) trace.text("batch");
  for (Nanos at = 0; at < 40'000; ++at) {
    trace.add_call(first, "cuCtxSynchronize", at * 100 + 10, at * 100 + 60);
    trace.add_call(second, "cuCtxSynchronize", at * 100 + 11, at * 100 + 61);
    if (ranges && at % 10'000 == 5) range(second, NvtxAct::Start, 1 + static_cast<u64>(at / 10'000), at * 100 + 70);
    if (ranges && at % 10'000 == 9 && at < 30'000)
      range(first, NvtxAct::End, 1 + static_cast<u64>(at / 10'000), at * 100 + 71);
  }
  trace.write(directory.file("t.gtrace"));
  LoadRequest request;
  request.files = {directory.file("t.gtrace")};
  Slices sink;
  EXPECT_TRUE(export_events(request, sink));
  return sink.told;
}

TEST(ExportedEvents, AreEachThreadsInTheOrderOfTheirEnds) {
  const std::vector<HostSlice> told = slices_of_two_threads(false);
  ASSERT_EQ(told.size(), 80'000u);
  u64 changes = 0;
  std::map<u32, Nanos> newest;
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_GT(told[i].end, newest[told[i].thread]);
    newest[told[i].thread] = told[i].end;
    changes += i > 0 && told[i].thread != told[i - 1].thread;
  }
  EXPECT_LT(changes, 1'000u) << "a chunk of one thread after the other";
}

TEST(ExportedEvents, OfRangesAcrossThreadsAreWhole) {
  std::vector<HostSlice> ranges;
  for (const HostSlice& slice : slices_of_two_threads(true))
    if (slice.kind == HostKind::Range) ranges.push_back(slice);
  ASSERT_EQ(ranges.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranges[i].length(), 4u * 100 + 1);
    EXPECT_TRUE(ranges[i].across_threads && !ranges[i].open);
  }
  EXPECT_TRUE(ranges[3].open) << "never ended";
}

}  // namespace
}  // namespace gputrace::test
