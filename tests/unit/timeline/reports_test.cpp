// What the reports say of a small program whose device times are known.
#include <gtest/gtest.h>

#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

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
  trace.key(100, 13, 1410, 1490, 9000, kCallback_cuMemcpyAsync);
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
  kernel                   launches  api mean ns  latency mean us  gap mean  short  queue mean
  first                           1          100            1.000    900 ns      0      900 ns
  ncclDevKernel_AllReduce         1          100            1.300  1.200 us      0    1.200 us
  launches = plain launch calls that succeeded, outside captures; api = time in the call on the host
  latency = call begin to kernel start; queue = call end to kernel start; gap = the part of that which the
    launch itself cost: from its call's end, or from the end of what the kernel waited for (stream, events),
    to its start; short = kernels shorter than their own launch call
  queued and submitted: CUPTI told no such stamps
  host and device clocks are tied to within 30 ns
  no room for: latency median, latency p99, api p99, api total, blocked (wider terminal, or --wide)

Copies and memsets by bytes
  kind  device  memory  async  count  bytes KiB  timed  total us  bandwidth GiB/s  api total ns
  HtoD       0  pinned  yes        1      5.859      1     1.500            3.725           100
  memory = of the host side; async = the call takes a stream; api_total = host time in the calls
  total = time on the device, summed; bandwidth = bytes / that time, of the copies that the device reported
  33.3 % of the time in which a copy or memset ran, a kernel ran too
  not known here: site

Idle gaps of the devices, longest first
  device   begin s  duration us  cause          parts
       0  0.000005        2.000  unknown  unknown 2us
  a gap: no kernel, copy or memset of this process ran on the device, between two that did; begin =
    CLOCK_MONOTONIC, in text from the first record on; cause = its largest part; parts = what it consists of,
    instant by instant
  not known here: call, site

)");
}

TEST(Timeline, TheReportsTellTheTimesAndWhatIsMissing) {
  DeviceBuilder trace;
  small_program(trace);
  const LoadedRun loaded = trace.load_all();
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
    const LoadedRun loaded = trace.load_all();
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

// A damaged record, before the cache of the newest stream holds any.
TEST(Timeline, AStreamOfAllOnesIsAStreamLikeAnyOther) {
  DeviceBuilder trace;
  trace.reading(500);
  trace.add<DeviceKernel>(trace.collector(), "", 5000, 5000, [&](auto& r) {
    r.start = trace.on_device(2000), r.finish = trace.on_device(2100), r.context = r.stream = ~0u;
  });
  trace.reading(6000);
  const ProcessTrace process = trace.load();
  EXPECT_EQ(process.device.join.operations, 1u);
  EXPECT_EQ(process.device.streams.size(), 1u);
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

}  // namespace
}  // namespace gputrace::test
