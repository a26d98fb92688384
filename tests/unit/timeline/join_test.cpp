// Device records joined to calls: by key, by order, not at all; what each launch waited for. Numbers by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/timeline/launch_window.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

TEST(KeyCalls, SayWhatTheyGiveToADevice) {
  EXPECT_EQ(driver_callback_kind(kCallback_cuLaunchKernelEx_ptsz), static_cast<int>(OperationKind::Kernel));
  EXPECT_EQ(driver_callback_kind(kCallback_cuGraphLaunch), static_cast<int>(OperationKind::Graph));
  EXPECT_EQ(driver_callback_kind(kCallback_cuMemcpy2DAsync_v2), static_cast<int>(OperationKind::Copy));
  EXPECT_EQ(driver_callback_kind(kCallback_cuMemsetD8Async), static_cast<int>(OperationKind::Memset));
  EXPECT_EQ(driver_callback_kind(kCallback_cuStreamSynchronize), kNothing);
  EXPECT_EQ(driver_callback_kind(0), kUnknownCallback);
  EXPECT_EQ(driver_callback_kind(~0u), kUnknownCallback);
}

TEST(Timeline, LatencyStampsSplitTheWayOfALaunch) {
  DeviceBuilder trace(5'000'000);
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "step", 0xa0);
  const u64 step = trace.text("step");
  trace.reading(500);
  const Nanos stamps[][3] = {{1050, 1200, 1400}, {2090, 2600, 3000}, {0, 0, 4200}, {5300, 5200, 5400}};
  for (u32 i = 0; i < 4; ++i) {
    const Nanos begin = 1000 * (i + 1);
    trace.launch(main, 0xf1, begin, begin + 100);
    trace.key(100, 11 + i, begin + 10, begin + 90, 9000);
  }
  for (u32 i = 0; i < 4; ++i)
    trace.stamped_kernel(11 + i, step, stamps[i][0], stamps[i][1], stamps[i][2], stamps[i][2] + 50, 9000);
  trace.reading(10'000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 4u);
  const LaunchTimes& times = function(process, "step").waits;
  EXPECT_EQ(times.latency.count(), 4u);
  EXPECT_EQ(times.in_buffer.count(), 2u);  // one was not recorded, one goes backward
  EXPECT_EQ(times.to_queued_ns, 50u + 90u);
  EXPECT_EQ(times.in_buffer.sum(), 150u + 510u);
  EXPECT_EQ(times.to_start.sum(), 200u + 400u);
}

// Launches 10 us apart, the clock jumps by four of them: a key's time then lies within another call, of which there are as many as keys.
TEST(Timeline, AJumpOfTheClockMovesNoKeyToANeighboursCall) {
  for (const i64 jump : {0, 40'000, 28'000}) {
    DeviceBuilder trace;
    const Thread main = trace.thread(100);
    u64 names[3];
    for (u32 i = 0; i < 3; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      trace.name_function(0xf1 + i, name, 0xa0);
      names[i] = trace.text(name);
    }
    constexpr Nanos kFirst = 1'000'000, kEvery = 10'000, kReading = 1'000'000;
    constexpr u32 kLaunches = 400, kJump = 130;
    trace.reading(kFirst - 1000);
    for (u32 i = 0; i < kLaunches; ++i) {
      const Nanos begin = kFirst + i * kEvery;
      if (i == kJump) trace.set_offset(jump);
      trace.launch(main, 0xf1 + i % 3, begin, begin + 2000);
      trace.key(100, 1 + i, begin + 100, begin + 1900, begin + 20'000);
      trace.kernel(1 + i, names[i % 3], begin + 3000, begin + 5000, begin + 20'000);
      if ((i + 1) % (kReading / kEvery) == 0) trace.reading(begin + 30'000, 300);
    }
    trace.reading(kFirst + kLaunches * kEvery + 100'000, 300);
    const JoinCounts join = trace.load().device.join;
    EXPECT_EQ(join.by_key, kLaunches) << jump;
    EXPECT_EQ(join.key_mismatch, 0u) << jump;
    EXPECT_EQ(join.calls_unanswered, 0u) << jump;
  }
}

// The clocks are off by more than calls are apart, within what is stated: the first launch stands alone and shows by how much.
TEST(Timeline, ClocksThatAreOffByMoreThanCallsAreApart) {
  for (const i64 off : {0, 25'000, -25'000}) {
    DeviceBuilder trace;
    const Thread main = trace.thread(100);
    u64 names[3];
    for (u32 i = 0; i < 3; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      trace.name_function(0xf1 + i, name, 0xa0);
      names[i] = trace.text(name);
    }
    constexpr u32 kLaunches = 200;
    trace.reading(900'000, 40'000);
    trace.set_offset(off);
    for (u32 i = 0; i < kLaunches; ++i) {
      const Nanos begin = 1'000'000 + (i ? 500'000 + i * 10'000 : 0);
      trace.launch(main, 0xf1 + i % 3, begin, begin + 2000);
      trace.key(100, 1 + i, begin + 100, begin + 1900, 9'000'000);
      trace.kernel(1 + i, names[i % 3], begin + 3000, begin + 5000, 9'000'000);
    }
    trace.set_offset(0);
    trace.reading(9'500'000, 40'000);
    const JoinCounts join = trace.load().device.join;
    EXPECT_EQ(join.by_key, kLaunches) << off;
    EXPECT_EQ(join.key_mismatch, 0u) << off;
    EXPECT_EQ(join.calls_unanswered, 0u) << off;
  }
}

// Two kernels, 1 ms apart; the host is in no call between the two launches.
IdleParts parts_with(u32 kind, i32 tid, Nanos length) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "step", 0xa0);
  const u64 step = trace.text("step");
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100);
  trace.key(100, 11, 1010, 1090, 3'000'000);
  trace.launch(main, 0xf1, 1'001'000, 1'001'100);
  trace.key(100, 12, 1'001'010, 1'001'090, 3'000'000);
  trace.kernel(11, step, 2000, 3000, 3'000'000);
  trace.kernel(12, step, 1'003'000, 1'004'000, 3'000'000);
  trace.overhead(kind, tid, 100'000, 100'000 + length, 3'000'000);
  trace.reading(3'100'000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.devices.at(0).gaps, 1u);
  return process.device.devices.at(0).longest.at(0).parts;
}

TEST(Timeline, OverheadOfTheLaunchingThreadHasItsPartOfAGap) {
  constexpr u32 kBufferFlush = 1u << 16, kLazyLoading = 5u << 16;
  const auto part = [](const IdleParts& parts, IdleCause cause) { return parts[static_cast<unsigned>(cause)]; };
  const auto collection = [&](u32 kind, i32 tid) {
    return part(parts_with(kind, tid, 600'000), IdleCause::Collection);
  };
  EXPECT_EQ(collection(kBufferFlush, 100), 600'000);
  EXPECT_EQ(collection(kBufferFlush, 101), 0);
  EXPECT_EQ(collection(kBufferFlush, 0), 0);
  EXPECT_EQ(collection(static_cast<u32>(OverheadKind::OwnSetup), 100), 600'000);
  EXPECT_EQ(collection(static_cast<u32>(OverheadKind::OwnThread), 100), 0);  // a sum, no place in time
  const IdleParts loading = parts_with(kLazyLoading, 100, 600'000);
  EXPECT_EQ(part(loading, IdleCause::ModuleLoad), 600'000);
  EXPECT_EQ(part(loading, IdleCause::Host), 998'000 - 600'000);
  EXPECT_EQ(part(loading, IdleCause::Launch), 100);
  EXPECT_EQ(part(loading, IdleCause::Dispatch), 1'900);
}

// Behind a function of the host's, also by an event from another stream: the gap is its part, but for the usual dispatch.
TEST(Timeline, AHostFunctionInFrontIsTheCause) {
  for (const bool by_event : {false, true}) {
    DeviceBuilder trace;
    const Thread main = trace.thread(100);
    trace.name_function(0xf1, "step", 0xa0);
    const u64 step = trace.text("step");
    trace.reading(500);
    const u64 second = by_event ? 0x52 : 0x51;
    trace.launch(main, 0xf1, 1000, 1100, 0x51);
    trace.order(main, OrderKind::HostFunction, 0x99, 0x51, 1200);
    trace.order(main, OrderKind::EventRecord, 0xe1, 0x51, 1300);
    if (by_event) trace.order(main, OrderKind::StreamWaitEvent, 0xe1, 0x52, 1400);
    trace.launch(main, 0xf1, 1500, 1600, second);
    trace.launch(main, 0xf1, 1700, 1800, second);
    for (u32 i = 0; i < 3; ++i) {
      const Nanos begin = i == 0 ? 1000 : 1300 + 200 * i;
      trace.key(100, 11 + i, begin + 10, begin + 90, 900'000);
    }
    trace.kernel(11, step, 2000, 3000, 900'000, 7);
    trace.kernel(12, step, 503'000, 504'000, 900'000, by_event ? 8 : 7);
    trace.kernel(13, step, 506'000, 507'000, 900'000, by_event ? 8 : 7);
    trace.reading(950'000);
    const ProcessTrace process = trace.load();
    EXPECT_EQ(process.device.join.by_key, 3u);
    const DeviceTimes& device = process.device.devices.at(0);
    const auto total = [&](IdleCause cause) { return device.causes[static_cast<unsigned>(cause)].total_ns; };
    EXPECT_EQ(total(IdleCause::HostFunction), 500'000u) << by_event;
    EXPECT_EQ(total(IdleCause::Dispatch), 2'000u) << by_event;  // of the third: nothing stands before it but the second
    EXPECT_EQ(device.idle_ns, 502'000u);
  }
}

// A runtime call that sets a box: a driver call for each layer, all under the runtime call's id.
TEST(Timeline, LayersOfOneMemsetHaveADeviceRecordEach) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.reading(500);
  for (Nanos i = 0; i < 3; ++i) {
    trace.add<Memset>(main, "cuMemsetD2D8_v2", 1000 + i * 200, 1100 + i * 200,
                      [](auto& r) { r.bytes = 64, r.context = 0xc0; });
    trace.key(100, 7, 1010 + i * 200, 1090 + i * 200, 9000, kCallback_cuMemsetD2D8_v2);
  }
  for (Nanos i = 0; i < 3; ++i) trace.memset(7, 64, 2000 + i * 500, 2100 + i * 500, 9000);
  trace.reading(9500);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 3u);
  EXPECT_EQ(process.device.join.calls_unanswered, 0u);
  EXPECT_EQ(process.device.devices.at(0).gaps, 2u);
  EXPECT_EQ(process.device.devices.at(0).unknown_gaps, 0u);
}

TEST(Timeline, TheTrueLaunchGapLeavesOutWhatTheKernelHadToWaitFor) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "first", 0xa0);
  trace.name_function(0xf2, "second", 0xa0);
  trace.name_function(0xf3, "third", 0xa0);
  const u64 first = trace.text("first"), second = trace.text("second"), third = trace.text("third");
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100);                      // waits for nothing: gap 1400 - 1100
  trace.launch(main, 0xf2, 1200, 1300);                      // behind it in the stream: 3050 - 3000
  trace.order(main, OrderKind::EventRecord, 0xe1, 0, 1400);  // after the second
  trace.order(main, OrderKind::StreamWaitEvent, 0xe1, 0x51, 1500);
  trace.launch(main, 0xf3, 1600, 1700, 0x51);  // another stream, behind the event: 4070 - 4000
  trace.key(100, 11, 1010, 1090, 5000);
  trace.key(100, 12, 1210, 1290, 5000);
  trace.key(100, 13, 1610, 1690, 5000);
  trace.kernel(11, first, 1400, 3000, 5000, 7);
  trace.kernel(13, third, 4070, 4100, 5000, 8);
  trace.kernel(12, second, 3050, 4000, 5000, 7);
  trace.reading(6000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 3u);
  EXPECT_EQ(process.device.join.not_joined, 0u);
  EXPECT_EQ(process.device.join.calls_unanswered, 0u);
  const LaunchTimes& one = function(process, "first").waits;
  EXPECT_EQ(one.latency.sum(), 400u);
  EXPECT_EQ(one.queue_ns, 300u);
  EXPECT_EQ(one.gap_ns, 300u);
  EXPECT_EQ(one.short_kernels, 0u);
  const LaunchTimes& two = function(process, "second").waits;
  EXPECT_EQ(two.latency.sum(), 1850u);
  EXPECT_EQ(two.queue_ns, 1750u);
  EXPECT_EQ(two.gap_ns, 50u);
  const LaunchTimes& three = function(process, "third").waits;
  EXPECT_EQ(three.queue_ns, 2370u);
  EXPECT_EQ(three.gap_ns, 70u);
  EXPECT_EQ(three.short_kernels, 1u);  // ran 30 ns, launched in 100
  ASSERT_EQ(process.device.devices.size(), 1u);
  const DeviceTimes& times = process.device.devices[0];
  EXPECT_EQ(times.span_ns(), 2700u);
  EXPECT_EQ(times.busy_ns, 1600u + 950u + 30u);
  EXPECT_EQ(times.idle_ns, 50u + 70u);
  EXPECT_EQ(times.gaps, 2u);
}

TEST(Timeline, AKernelOnTheLegacyStreamWaitsForTheOthersAndTheyForIt) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "a", 0xa0);
  trace.name_function(0xf2, "b", 0xa0);
  trace.name_function(0xf3, "c", 0xa0);
  const u64 a = trace.text("a"), b = trace.text("b"), c = trace.text("c");
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100, 0x51);
  trace.launch(main, 0xf2, 1200, 1300, 0);
  trace.launch(main, 0xf3, 1400, 1500, 0x51);
  for (u32 i = 0; i < 3; ++i) trace.key(100, 11 + i, 1010 + 200 * i, 1090 + 200 * i, 5000);
  trace.kernel(11, a, 1200, 2000, 5000, 8);
  trace.kernel(12, b, 2010, 2500, 5000, 7);
  trace.kernel(13, c, 2530, 2600, 5000, 8);
  trace.reading(6000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(function(process, "b").waits.gap_ns, 10u);
  EXPECT_EQ(function(process, "c").waits.gap_ns, 30u);
}

TEST(Timeline, WithoutKeysTheOrderInTheStreamDecidesWhereTheKernelAgrees) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "small", 0xa0);
  trace.name_function(0xf2, "large", 0xa0);
  const u64 small = trace.text("small"), large = trace.text("large"), stranger = trace.text("stranger");
  trace.stream(0x51, 8);
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100, 0x51);
  trace.launch(main, 0xf2, 1200, 1300, 0x51);
  trace.launch(main, 0xf1, 1400, 1500, 0x51);  // its record is lost
  trace.launch(main, 0xf2, 1600, 1700, 0x51);
  trace.kernel(0, small, 2000, 2100, 5000, 8);
  trace.kernel(0, large, 2100, 2200, 5000, 8);
  trace.kernel(0, large, 2300, 2400, 5000, 8);
  trace.kernel(0, stranger, 2500, 2600, 5000, 8);  // nobody launched that
  trace.reading(6000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 0u);
  EXPECT_EQ(process.device.join.by_order, 3u);
  EXPECT_EQ(process.device.join.not_joined, 1u);
  EXPECT_EQ(process.device.join.calls_unanswered, 1u);
  EXPECT_EQ(function(process, "large").waits.latency.sum(), 900u + 700u);
  EXPECT_EQ(function(process, "small").waits.latency.sum(), 1000u);
  u64 executions = 0;
  for (const KernelLaunches& group : process.kernels) executions += group.times.durations.count();
  EXPECT_EQ(executions, 4u) << "what was not joined still has a time";
}

TEST(Timeline, WithoutAnyKeyOrNameTheOnlyStreamThatAgreesIsTheOne) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "a", 0xa0);
  const u64 name = trace.text("a");
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100, 0x51, 8);
  trace.launch(main, 0xf1, 1200, 1300, 0x52, 9);
  trace.launch(main, 0xf1, 1400, 1500, 0x53, 9);
  trace.launch(main, 0xf1, 1600, 1700, 0x51, 9);
  trace.kernel(0, name, 2000, 2100, 5000, 21, 9);  // 0x52, 0x53 or 0x51: not told
  trace.kernel(0, name, 2000, 2200, 5000, 20, 8);  // can be 0x51 alone, and says that stream 20 is that
  trace.kernel(0, name, 2300, 2400, 5000, 20, 9);
  trace.kernel(0, name, 2500, 2600, 5000, 22, 9);  // 0x52 or 0x53
  trace.reading(6000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_order, 2u);
  EXPECT_EQ(process.device.join.not_joined, 2u);
  EXPECT_EQ(function(process, "a").waits.latency.sum(), 1000u + 700u);
}

// An operation that cannot be joined costs the same however many streams there are. When it cost as much as the square
// of their number, this took minutes.
TEST(Timeline, ManyStreamsWithoutARecordOfAny) {
  constexpr u32 kStreams = 1600, kRounds = 40;
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "a", 0xa0);
  const u64 name = trace.text("a");
  trace.reading(500);
  Nanos time = 1000;
  for (u32 i = 0; i < kStreams * kRounds; ++i, time += 100) {
    trace.launch(main, 0xf1, time, time + 50, 0x1000 + i % kStreams, 8 + i % kStreams % 7);
    trace.kernel(0, name, time + 60'000'000, time + 60'000'040, time + 60'000'100, 10 + i % kStreams,
                 8 + i % kStreams % 7);
  }
  trace.reading(time + 70'000'000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.streams.size(), kStreams);
  EXPECT_EQ(process.device.join.operations, kStreams * kRounds);
  EXPECT_EQ(process.device.join.not_joined, kStreams * kRounds);
}

// A launch of 0xf1, its key, and what CUPTI says that ran.
ProcessTrace launched_and_ran(DeviceBuilder& trace, u64 name) {
  const Thread main = trace.thread(100);
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100);
  trace.key(100, 11, 1010, 1090, 5000);
  trace.kernel(11, name, 1400, 3000, 5000, 7);
  trace.reading(6000);
  return trace.load();
}

// A module is unloaded, the next one's function stands at the same place, and CUPTI names its kernel by the one before.
TEST(Timeline, AKeyIsBelievedWhereTheKernelsNameIsOfCodeThatIsGone) {
  DeviceBuilder trace;
  const auto module = [&](ModuleAct what, u64 handle, Nanos at) {
    trace.add<ModuleLoad>(TraceBuilder::definitions(), "", at, at,
                          [&](auto& r) { r.module = handle, r.what = static_cast<u32>(what), r.thread = 100; });
  };
  module(ModuleAct::Module, 0xa1, 600);
  trace.name_function(0xf1, "before", 0xa1, 610);
  module(ModuleAct::Unload, 0xa1, 700);
  module(ModuleAct::Module, 0xa2, 800);
  trace.name_function(0xf1, "now", 0xa2, 810);
  const ProcessTrace process = launched_and_ran(trace, trace.text("before"));
  EXPECT_EQ(process.device.join.key_mismatch, 0u);
  EXPECT_EQ(process.device.join.by_key, 1u);
  for (const KernelLaunches& kernel : process.kernels) {
    const bool is_it = process.functions[kernel.shape.function].symbol == "now";
    EXPECT_EQ(kernel.times.durations.count(), is_it ? 1u : 0u);
  }
}

TEST(Timeline, AKeyThatLeadsToAnotherKernelIsNotBelieved) {
  DeviceBuilder trace;
  trace.name_function(0xf1, "known", 0xa0);
  const ProcessTrace process = launched_and_ran(trace, trace.text("other"));
  EXPECT_EQ(process.device.join.key_mismatch, 1u);
  EXPECT_EQ(process.device.join.not_joined, 1u);
}

TEST(Timeline, TheNodesOfAReplayBelongToItsLaunch) {
  DeviceBuilder trace(1'000'000'000'000);
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "node", 0xa0);
  const u64 node = trace.text("node");
  trace.reading(500);
  trace.add<GraphInstantiate>(main, "cuGraphInstantiate", 600, 700,
                              [](auto& r) { r.graph = 0x61, r.exec = 0x62, r.nodes = 2, r.kernel_nodes = 2; });
  for (u64 i = 0; i < 2; ++i) {
    trace.add<GraphNode>(main, "cuGraphInstantiate", 600, 700, [&](auto& r) {
      r.exec = 0x62, r.node = 0x70 + i, r.function = 0xf1, r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256;
      r.block_y = r.block_z = 1;
    });
  }
  for (u32 i = 0; i < 2; ++i) {
    const Nanos at = 1000 + 2000 * i;
    trace.add<GraphLaunch>(main, "cuGraphLaunch", at, at + 100, [](auto& r) { r.exec = 0x62, r.context = 0xc0; });
    trace.key(100, 20 + i, at + 5, at + 95, 6000, kCallback_cuGraphLaunch);
    trace.kernel(20 + i, node, at + 300, at + 400, 6000, 7, 8, 5, 900);
    trace.kernel(20 + i, node, at + 450, at + 600, 6000, 7, 8, 5, 901);
  }
  trace.reading(7000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.by_key, 4u);
  ASSERT_EQ(process.graphs.size(), 1u);
  EXPECT_EQ(process.graphs[0].times.replays, 2u);
  EXPECT_EQ(process.graphs[0].times.nodes, 4u);
  EXPECT_EQ(process.graphs[0].times.device_ns, 600u);
  EXPECT_EQ(process.graphs[0].times.latency_ns, 600u);
  ASSERT_EQ(process.kernels.size(), 1u) << "the node's row is the row of its replays";
  EXPECT_EQ(process.kernels[0].in_graphs, 4u);
  EXPECT_EQ(process.kernels[0].times.durations.sum(), 500u);
  EXPECT_EQ(process.device.devices[0].idle_ns, 50u + 50u + 1700u);
  EXPECT_EQ(process.device.devices[0].causes[static_cast<unsigned>(IdleCause::GraphInternal)].total_ns, 100u);
}

// Kernels of one name and shape from two modules, as nodes of one graph, under the ids of their clones.
ProcessTrace twins(bool told) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "twin", 0xa0);
  trace.name_function(0xf2, "twin", 0xa1);
  trace.name_function(0xf3, "alone", 0xa1);
  const u64 twin = trace.text("twin"), alone = trace.text("alone");
  trace.reading(500);
  trace.add<GraphInstantiate>(main, "cuGraphInstantiate", 600, 700,
                              [](auto& r) { r.graph = 0x61, r.exec = 0x62, r.nodes = 4, r.kernel_nodes = 4; });
  constexpr u64 functions[] = {0xf1, 0xf2, 0xf1, 0xf3};
  for (u64 i = 0; i < 4; ++i) {
    trace.add<GraphNode>(main, "cuGraphInstantiate", 600, 700, [&](auto& r) {
      r.exec = 0x62, r.node = 0x70 + i, r.function = functions[i], r.grid_x = i == 2 ? 9 : 8;
      r.grid_y = r.grid_z = r.block_y = r.block_z = 1, r.block_x = 256;
    });
    if (told)
      trace.add<DeviceGraphNode>(trace.definitions(), "", 710, 710,
                                 [&](auto& r) { r.exec = 0x62, r.graph = 5, r.node = 0x70 + i, r.id = 900 + i; });
  }
  trace.add<DeviceGraphNode>(trace.definitions(), "", 710, 710, [](auto& r) { r.exec = 0x62, r.graph = 5; });
  for (u32 i = 0; i < 2; ++i) {
    const Nanos at = 1000 + 2000 * i;
    trace.add<GraphLaunch>(main, "cuGraphLaunch", at, at + 100, [](auto& r) { r.exec = 0x62, r.context = 0xc0; });
    trace.key(100, 20 + i, at + 5, at + 95, 6000, kCallback_cuGraphLaunch);
    trace.kernel(20 + i, twin, at + 450, at + 650, 6000, 7, 8, 5, 901);  // the second node first
    trace.kernel(20 + i, twin, at + 300, at + 400, 6000, 7, 8, 5, 900);
    trace.kernel(20 + i, twin, at + 700, at + 1000, 6000, 7, 9, 5, 902);
    trace.kernel(20 + i, alone, at + 1100, at + 1500, 6000, 7, 8, 5, 903);
  }
  trace.add<ObjectCall>(main, "cuGraphExecDestroy", 5500, 5510, [](auto& r) {  // before its records came
    r.object = 0x62, r.kind = static_cast<u32>(ObjectKind::GraphExec), r.what = static_cast<u32>(ObjectAct::Destroyed);
  });
  trace.reading(7000);
  return trace.load();
}

TEST(Timeline, NodesOfOneNameBelongToTheirOwnFunctions) {
  const ProcessTrace process = twins(true);
  ASSERT_EQ(process.kernels.size(), 4u);
  for (const KernelLaunches& kernel : process.kernels) {
    const Function& function = process.functions[kernel.shape.function];
    const u64 wanted = function.symbol == "alone"  ? 400
                       : kernel.shape.grid[0] == 9 ? 300
                       : function.handle == 0xf2   ? 200
                                                   : 100;
    EXPECT_EQ(kernel.executions(), 2u);
    EXPECT_EQ(kernel.times.durations.count(), 2u);
    EXPECT_EQ(kernel.times.durations.sum(), 2 * wanted) << function.symbol << " " << function.handle;
  }
  EXPECT_EQ(process.device.join.nodes_in_doubt, 0u);
}

TEST(Timeline, NodesThatCouldBeOfSeveralFunctionsAreNotTakenForOne) {
  const ProcessTrace process = twins(false);
  u64 executions = 0, in_doubt = 0, sure = 0;
  for (const KernelLaunches& kernel : process.kernels) {
    executions += kernel.executions();
    (kernel.unjoined ? in_doubt : sure) += kernel.times.durations.sum();
    if (kernel.unjoined) {
      EXPECT_EQ(process.functions[kernel.shape.function].symbol, "twin");
    }
  }
  EXPECT_EQ(executions, 8u) << "four nodes, two replays";
  EXPECT_EQ(sure, 2 * 400u) << "one function of that name: it is the one";
  EXPECT_EQ(in_doubt, 2 * 600u);
  EXPECT_EQ(process.device.join.nodes_in_doubt, 6u);
}

}  // namespace
}  // namespace gputrace::test
