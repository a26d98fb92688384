// Device records joined to calls: by key, by order, not at all; what each launch waited for; with records late,
// reordered and lost. Numbers by hand, and against a reference for random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

const Function& function(const ProcessTrace& process, const std::string& symbol) {
  for (const Function& known : process.functions) {
    if (known.symbol == symbol) return known;
  }
  ADD_FAILURE() << "no function " << symbol;
  static const Function kNothing;
  return kNothing;
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
  EXPECT_EQ(times.in_buffer.count(), 2u);  // one was not told, one goes backward
  EXPECT_EQ(times.to_queued_ns, 50u + 90u);
  EXPECT_EQ(times.in_buffer.sum(), 150u + 510u);
  EXPECT_EQ(times.to_start.sum(), 200u + 400u);
}

// Two kernels, 1 ms apart; the host is in no call between the two launches.
IdleVerdict verdict_with(u32 kind, i32 tid, Nanos length) {
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
  return process.device.devices.at(0).longest.at(0).verdict;
}

TEST(Timeline, AGapIsTheProfilersWhereItsOverheadHeldTheLaunchingThreadLongest) {
  constexpr u32 kBufferFlush = 1u << 16, kLazyLoading = 5u << 16;
  EXPECT_EQ(verdict_with(kBufferFlush, 100, 600'000).cause, IdleCause::Collection);
  EXPECT_EQ(verdict_with(kBufferFlush, 100, 400'000).cause, IdleCause::HostLate);
  EXPECT_EQ(verdict_with(kBufferFlush, 101, 600'000).cause, IdleCause::HostLate);
  EXPECT_EQ(verdict_with(kBufferFlush, 0, 600'000).cause, IdleCause::HostLate);
  EXPECT_EQ(verdict_with(kOverheadOwnSetup, 100, 600'000).cause, IdleCause::Collection);
  EXPECT_EQ(verdict_with(kOverheadOwnThread, 100, 600'000).cause, IdleCause::HostLate);  // a sum, no place in time
  EXPECT_EQ(verdict_with(kLazyLoading, 100, 600'000).cause, IdleCause::ModuleLoad);
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
  trace.order(main, OrderWhat::EventRecord, 0xe1, 0, 1400);  // after the second
  trace.order(main, OrderWhat::StreamWaitEvent, 0xe1, 0x51, 1500);
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

TEST(Timeline, AKeyThatLeadsToAnotherKernelIsNotBelieved) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "known", 0xa0);
  const u64 other = trace.text("other");
  trace.reading(500);
  trace.launch(main, 0xf1, 1000, 1100);
  trace.key(100, 11, 1010, 1090, 5000);
  trace.kernel(11, other, 1400, 3000, 5000, 7);
  trace.reading(6000);
  const ProcessTrace process = trace.load();
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
    trace.key(100, 20 + i, at + 5, at + 95, 6000, 514);
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

// 2000 first 3000, 2500 collective 4000, 3500 copy 5000, idle, 7000 first 8000 (launched by nobody that we know).
void small_program(DeviceBuilder& trace) {
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "first", 0xa0);
  trace.name_function(0xf2, "ncclDevKernel_AllReduce", 0xa0);
  const u64 first = trace.text("first"), reduce = trace.text("ncclDevKernel_AllReduce");
  trace.independent(0x51);
  trace.independent(0x52);
  trace.reading(500, 20);
  trace.launch(main, 0xf1, 1000, 1100);
  trace.launch(main, 0xf2, 1200, 1300, 0x51);
  trace.add<Copy>(main, "cuMemcpyAsync", 1400, 1500, [](auto& r) {
    r.kind = static_cast<u8>(CopyKind::HtoD), r.source_memory = static_cast<u8>(MemoryKind::Pinned);
    r.bytes = 6000, r.asynchronous = 1, r.context = 0xc0, r.stream = 0x52;
  });
  trace.key(100, 11, 1010, 1090, 9000);
  trace.key(100, 12, 1210, 1290, 9000);
  trace.key(100, 13, 1410, 1490, 9000, 306);
  trace.kernel(11, first, 2000, 3000, 9000, 7);
  trace.kernel(12, reduce, 2500, 4000, 9000, 8);
  trace.copy(13, 1, 6000, 3500, 5000, 9000, 9);
  trace.kernel(77, first, 7000, 8000, 9000, 7);  // its call is not in the trace
  trace.add<DeviceLoss>(TraceBuilder::definitions(), "", 9100, 9100, [](auto& r) {
    r.count = 3, r.reason = static_cast<u32>(DeviceLossReason::ZeroTime), r.kind = 10;
  });
  trace.add<DeviceOverhead>(trace.collector(), "", 9200, 9200,
                            [](auto& r) { r.start = 100, r.finish = 180, r.kind = 1u << 16; });
  trace.reading(9500, 30);
  trace.state(DeviceCollection::Ended, "", 9600);
}

TEST(Timeline, TheTextOfItIsAsItWasReviewed) {
  DeviceBuilder trace;
  small_program(trace);
  ReportRequest request;
  request.sections = {"launches", "copies", "idle"};
  TextStyle style;
  style.width = 110;
  std::string text = render_text(make_report(trace.load_all(), request), style);
  text.erase(0, text.find("Launch calls by kernel"));
  EXPECT_EQ(text, R"(Launch calls by kernel
  kernel                   launches  api mean  latency mean  gap mean  short  queue mean  latency median
  first                           1    100 ns      1.000 us    900 ns      0      900 ns        1.000 us
  ncclDevKernel_AllReduce         1    100 ns      1.300 us  1.200 us      0    1.200 us        1.300 us
  launches = plain launch calls that succeeded, outside captures; api = time in the call on the host
  latency = call begin to kernel start; queue = call end to kernel start; gap = the part of that which the
    launch itself cost: from its call's end, or from the end of what the kernel waited for (stream, events),
    to its start; short = kernels shorter than their own launch call
  queued and submitted: CUPTI told no such stamps
  host and device clocks are tied to within 30 ns
  no room for: latency p99, api p99, api total, blocked (wider terminal, or --format json)

Copies and memsets by bytes
  kind  device  memory  async  count      bytes  timed     total    bandwidth  api total
  HtoD       0  pinned  yes        1  5.859 KiB      1  1.500 us  3.725 GiB/s     100 ns
  memory = of the host side; async = the call takes a stream; api_total = host time in the calls
  total = time on the device, summed; bandwidth = bytes / that time, of the copies that the device reported
  33.3 % of the time in which a copy or memset ran, a kernel ran too

Idle gaps of the devices, longest first
  device       begin  duration  cause
       0  0.000005 s  2.000 us  unknown
  a gap: no kernel, copy or memset of this process ran on the device, between two that did; begin =
    CLOCK_MONOTONIC, in text from the first record on; the site needs stacks
  not known here: call, site

)");
}

TEST(Timeline, TheReportsTellTheTimesAndWhatIsMissing) {
  DeviceBuilder trace;
  small_program(trace);
  const LoadedTrace loaded = trace.load_all();
  const Report report = make_report(loaded, {});
  EXPECT_EQ(report.coverage.device_timing, "cupti");
  const Table& kernels = *report.table("kernels");
  const Row& row = row_with(kernels, "symbol", text_value("first"));
  EXPECT_EQ(cell(kernels, row, "total_ns"), whole(2000));
  EXPECT_EQ(cell(kernels, row, "mean_ns"), whole(1000));
  EXPECT_EQ(cell(kernels, row, "share"), Value(2000.0 / 3500.0));
  EXPECT_EQ(cell(kernels, row, "rank"), whole(1));
  EXPECT_EQ(cell(kernels, row, "registers"), whole(40)) << "of PTX only the device knows";
  const Table& copies = *report.table("copies");
  const Row& copy = row_with(copies, "kind", text_value("HtoD"));
  EXPECT_EQ(cell(copies, copy, "memory"), text_value("pinned"));
  EXPECT_EQ(cell(copies, copy, "total_ns"), whole(1500));
  EXPECT_EQ(cell(copies, copy, "bandwidth"), whole(4'000'000'000));
  const Table& overview = *report.table("overview");
  const auto metric = [&](const char* name) {
    return cell(overview, row_with(overview, "metric", text_value(name)), "value");
  };
  // 2000 kernel 3000 collective alone 4000 copy alone 5000 idle 7000 kernel 8000
  EXPECT_EQ(metric("gpu_busy_ratio"), Value(4000.0 / 6000.0));
  EXPECT_EQ(metric("gpu_idle_ratio"), Value(2000.0 / 6000.0));
  EXPECT_EQ(metric("compute_ns"), whole(2000));
  EXPECT_EQ(metric("exposed_collective_ns"), whole(1000));
  EXPECT_EQ(metric("exposed_copy_ns"), whole(1000));
  EXPECT_EQ(metric("idle_ns"), whole(2000));
  EXPECT_EQ(metric("kernel_ns"), whole(3500));
  EXPECT_EQ(metric("kernels"), whole(3)) << "the device ran one more than we saw launched";
  const Table& idle = *report.table("idle");
  ASSERT_EQ(idle.rows.size(), 1u);
  EXPECT_EQ(cell(idle, idle.rows[0], "begin_ns"), whole(5000));
  EXPECT_EQ(cell(idle, idle.rows[0], "duration_ns"), whole(2000));
  EXPECT_EQ(cell(idle, idle.rows[0], "cause"), text_value("unknown")) << "nothing is known of who launched it";
  const Table& notes = *report.table("quality-notes");
  EXPECT_EQ(cell(notes, row_with(notes, "what", text_value("device-loss")), "text"),
            text_value("3 device records without a start or an end"));
  EXPECT_EQ(cell(notes, row_with(notes, "what", text_value("join")), "text"),
            text_value("4 device operations joined to their calls: 3 by correlation id, 0 by order, 1 not"));
}

// Three alike kernels in a row, joined by order: while all records are there the order is right; with one missing,
// which of the calls it was cannot be known, and the report says so.
TEST(Timeline, AlikeKernelsOfWhichOneIsLostAreInDoubt) {
  for (const bool lost : {false, true}) {
    DeviceBuilder trace;
    const Thread main = trace.thread(100);
    trace.name_function(0xf1, "same", 0xa0);
    const u64 name = trace.text("same");
    trace.stream(0x51, 8);
    trace.reading(500);
    for (const Nanos at : {1000, 1200, 1400}) trace.launch(main, 0xf1, at, at + 100, 0x51);
    trace.kernel(0, name, 2000, 2100, 5000, 8);
    if (!lost) trace.kernel(0, name, 2200, 2300, 5000, 8);
    trace.kernel(0, name, 2400, 2500, 5000, 8);
    trace.reading(6000);
    const LoadedTrace loaded = trace.load_all();
    const JoinCounts& join = loaded.processes[0].device.join;
    EXPECT_EQ(join.by_order, lost ? 2u : 3u);
    EXPECT_EQ(join.by_order_alike, 2u);
    EXPECT_EQ(join.in_doubt(), lost ? 2u : 0u);
    const Report report = make_report(loaded, {});
    const Table& notes = *report.table("quality-notes");
    const auto text = std::get<std::string>(cell(notes, row_with(notes, "what", text_value("join")), "text"));
    EXPECT_EQ(text.find("neighbour's") != std::string::npos, lost) << text;
    const auto said = [](const std::string& remark) { return remark.find("neighbour's") != std::string::npos; };
    EXPECT_EQ(std::any_of(report.coverage.remarks.begin(), report.coverage.remarks.end(), said), lost);
  }
}

TEST(Timeline, WithoutDeviceRecordsTheReasonStandsWhereTheTimesWouldBe) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.info("not_collected", "device: not asked for (GPUTRACE_COLLECT)");
  trace.add_call(main, "cuInit", 1000, 1100);
  const Report report = make_report(trace.load_all(), {});
  EXPECT_EQ(report.coverage.device_timing, "none");
  EXPECT_EQ(report.table("idle"), nullptr);
  const Table& overview = *report.table("overview");
  const Row& busy = row_with(overview, "metric", text_value("gpu_busy_ratio"));
  EXPECT_TRUE(is_null(cell(overview, busy, "value")));
  EXPECT_EQ(cell(overview, busy, "note"), text_value("needs device timing: not asked for (GPUTRACE_COLLECT)"));
}

// ------------------------------------------------------------------ random programs

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

}  // namespace
}  // namespace gputrace::test
