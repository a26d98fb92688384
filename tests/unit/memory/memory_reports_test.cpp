// Memory and copies: traces with a known answer, number by number.
#include "analysis/lines/sites.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "analysis/run/quality.h"
#include "tests/unit/analysis/reported_calls.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

// A graph that allocates 1000 and 500 bytes and frees the first: what a replay leaves is freed by a call, or by the next replay.
TEST(MemoryReport, CountsWhatReplaysOfGraphsAllocate) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.device(1, 80ull << 30, 0xc1);
  trace.add<GraphInstantiate>(main, "cuGraphInstantiate", 1000, 1010,
                              [&](auto& r) { r.graph = 0x61, r.exec = 0xe1, r.nodes = 3; });
  const auto node = [&](u64 handle, GraphNodeKind kind, u64 address, u64 bytes) {
    trace.add<GraphNode>(main, "cuGraphInstantiate", 1000, 1010, [&](auto& r) {
      r.exec = 0xe1, r.node = handle, r.kind = static_cast<u32>(kind), r.address = address, r.bytes = bytes,
      r.device = 1;
    });
  };
  node(1, GraphNodeKind::MemAlloc, 0xa000, 1000);
  node(2, GraphNodeKind::MemAlloc, 0xb000, 500);
  node(3, GraphNodeKind::MemFree, 0xa000, 0);
  for (int i = 0; i < 3; ++i)
    trace.add<GraphLaunch>(main, "cuGraphLaunch", 2000 + i * 10, 2007 + i * 10, [](auto& r) { r.exec = 0xe1; });
  trace.add<Free>(main, "cuMemFreeAsync", 3000, 3010,
                  [](auto& r) { r.address = 0xb000, r.kind = static_cast<u32>(AllocKind::Pool); });
  trace.add<GraphLaunch>(main, "cuGraphLaunch", 4000, 4007, [](auto& r) { r.exec = 0xe1; });
  const LoadedRun loaded = trace.load_all();
  const Table memory = memory_report(loaded);
  ASSERT_EQ(memory.rows.size(), 1u);
  const Row& row = memory.rows[0];
  EXPECT_EQ(cell(memory, row, "pool"), text_value("graphs"));
  EXPECT_EQ(cell(memory, row, "device"), whole(1));
  EXPECT_EQ(cell(memory, row, "allocations"), whole(8));
  EXPECT_EQ(cell(memory, row, "peak_bytes"), whole(1500));
  EXPECT_EQ(cell(memory, row, "live_at_end_bytes"), whole(500));
  EXPECT_EQ(metric(loaded, "peak_memory_bytes"), whole(1500));
}

// A free that is not in the trace: the address can have been given out again only after it, so both never lived at a time.
// What only takes memory is not what wanted it, where that is an operation too.
TEST(MemoryReport, OfAnAllocationIsWhatWantedIt) {
  SourceLines lines;
  const auto operation = [&](const char* name, u32 parent) {
    SourceFrame frame;
    frame.function = name, frame.parent = parent;
    lines.frames.push_back(frame);
    lines.origins.push_back({0, static_cast<u32>(lines.frames.size() - 1)});
    return static_cast<u32>(lines.frames.size() - 1);
  };
  lines.frames.clear(), lines.origins.clear();
  operation("", 0);
  const u32 clone = operation("aten::clone", 0), like = operation("aten::empty_like", clone);
  const u32 strided = operation("aten::empty_strided", like), mark = operation("Optimizer.step#Adam.step", 0);
  const u32 marked = operation("aten::empty", mark);
  EXPECT_EQ(allocation_of_origin(lines, strided), "aten::clone");
  EXPECT_EQ(allocation_of_origin(lines, clone), "aten::clone");
  EXPECT_EQ(allocation_of_origin(lines, marked), "aten::empty");
  EXPECT_EQ(operation_of_origin(lines, strided), "aten::empty_strided");
}

TEST(MemoryReport, AnAddressThatIsGivenOutAgainWasFreedBefore) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  for (int i = 0; i < 3; ++i) {
    trace.add<Alloc>(main, "cuMemAlloc", 1000 + i * 10, 1005 + i * 10, [](auto& r) {
      r.address = 0xa000, r.bytes = 700, r.device = 0, r.kind = static_cast<u32>(AllocKind::Device);
    });
  }
  EXPECT_EQ(metric(trace.load_all(), "peak_memory_bytes"), whole(700));
}

// Six allocations whose frees were dropped are not six at a time: nobody knows.
TEST(MemoryReport, ALedgerWithHolesTellsLowerBounds) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  for (u64 i = 0; i < 6; ++i) {
    trace.add<Alloc>(
        main, "cuMemAlloc", 1000 + static_cast<Nanos>(i) * 10, 1005 + static_cast<Nanos>(i) * 10, [&](auto& r) {
          r.address = 0xa000 + i * 0x1000, r.bytes = 700, r.device = 0, r.kind = static_cast<u32>(AllocKind::Device);
        });
  }
  trace.drop(main, DropReason::RingFull, 6);
  const LoadedRun loaded = trace.load_all();
  EXPECT_TRUE(is_null(metric(loaded, "peak_memory_bytes")));
  const Table memory = memory_report(loaded);
  // The six were lost after the last record: up to the one before it nothing was missing.
  EXPECT_EQ(cell(memory, memory.rows.at(0), "peak_at_least_bytes"), whole(5 * 700));
  EXPECT_EQ(cell(memory, memory.rows.at(0), "live_at_least_bytes"), whole(0));
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(cell(memory, memory.rows[0], "allocations"), whole(6));
  for (const char* column : {"peak_bytes", "peak_at_ns", "live_at_end_bytes"})
    EXPECT_TRUE(is_null(cell(memory, memory.rows[0], column)));
  const auto& remarks = coverage_of(loaded).remarks;
  EXPECT_NE(std::find(remarks.begin(), remarks.end(), kHolesInTheLedger), remarks.end());
}

// Two at a time; then records are lost for a while, and what was there may be gone.
TEST(MemoryReport, LowerBoundsHoldBesideALoss) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  const auto allocate = [&](u64 address, Nanos at) {
    trace.add<Alloc>(main, "cuMemAlloc", at - 5, at, [&](auto& r) {
      r.address = address, r.bytes = 700, r.device = 0, r.kind = static_cast<u32>(AllocKind::Device);
    });
  };
  const auto free = [&](u64 address, Nanos at) {
    trace.add<Free>(main, "cuMemFree", at, at + 5,
                    [&](auto& r) { r.address = address, r.kind = static_cast<u32>(AllocKind::Device); });
  };
  for (u64 i = 1; i <= 4; ++i) {
    allocate(i << 16, 1000 + static_cast<Nanos>(i) * 20);
    if (i > 2) free((i - 2) << 16, 1008 + static_cast<Nanos>(i) * 20);
  }
  trace.add<Gap>(main, "", 1100, 1200, [](auto& r) { r.count = 7; });
  trace.drop(main, DropReason::RingFull, 7);
  allocate(9 << 16, 1300);
  free(4 << 16, 1310);  // of what may not be what it was
  const Table memory = memory_report(trace.load_all());
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(cell(memory, memory.rows[0], "peak_at_least_bytes"), whole(3 * 700));
  EXPECT_EQ(cell(memory, memory.rows[0], "live_at_least_bytes"), whole(700));
}

TEST(CopiesReport, WorkIsItsStreamsDevices) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.device(0, 80ull << 30, 0xc0);
  trace.device(1, 80ull << 30, 0xc1);
  trace.add<ObjectCall>(main, "cuStreamCreate", 500, 510, [](auto& r) {
    r.object = 0x51, r.parent = 0xc1, r.kind = static_cast<u32>(ObjectKind::Stream),
    r.what = static_cast<u32>(ObjectAct::Created);
  });
  trace.add<Copy>(main, "cuMemcpyHtoDAsync", 1000, 1010, [](auto& r) {
    r.bytes = 64, r.stream = 0x51, r.context = 0xc0, r.asynchronous = 1, r.kind = static_cast<u8>(CopyKind::HtoD);
  });
  trace.add<Memset>(main, "cuMemsetD8Async", 1100, 1110,
                    [](auto& r) { r.bytes = 32, r.stream = 0x51, r.context = 0xc0, r.asynchronous = 1; });
  const Table copies = copies_report(trace.load_all());
  ASSERT_EQ(copies.rows.size(), 2u);
  for (const Row& row : copies.rows) EXPECT_EQ(cell(copies, row, "device"), whole(1));
}

TEST(CopiesReport, NothingIsExecutedOfNoBytes) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  for (u32 i = 0; i < 3; ++i) {
    trace.add<Copy>(main, "cuMemcpyHtoDAsync_v2", 1000 + i * 10, 1005 + i * 10, [&](auto& r) {
      r.kind = static_cast<u8>(CopyKind::HtoD), r.asynchronous = 1, r.context = 0xc0, r.bytes = i * 64;
    });
  }
  trace.add<Memset>(main, "cuMemsetD8Async", 2000, 2010, [](auto& r) { r.context = 0xc0; });
  u64 count = 0, bytes = 0;
  for (const CopyGroup& group : trace.load().copies) count += group.count, bytes += group.bytes;
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(bytes, 192u);
}

TEST(CopiesReport, TellsTheKindOfHostMemoryByAddressAndTime) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.device(0, 80ull << 30, 0xc0);
  allocate(trace, main, AllocKind::Device, 0x10000, 4096, 1000, 1010);
  allocate(trace, main, AllocKind::Host, 0x20000, 4096, 1020, 1030);
  copy(trace, main, CopyKind::HtoD, 0x10000, 0x20000 + 100, 64, 2000, true);  // pinned
  copy(trace, main, CopyKind::HtoD, 0x10000, 0x90000, 32, 2200, true);        // pageable
  copy(trace, main, CopyKind::Unknown, 0x20000, 0x10000, 16, 2400, false);    // DtoH to pinned, known by the addresses
  copy(trace, main, CopyKind::Unknown, 0x10000, 0x10800, 8, 2600, false);     // DtoD
  give_back(trace, main, AllocKind::Host, 0x20000, 3000, 3010);
  copy(trace, main, CopyKind::HtoD, 0x10000, 0x20000 + 100, 4, 4000, true);  // the same address is pageable now
  const LoadedRun loaded = trace.load_all();
  const Table table = copies_report(loaded);
  const auto find = [&](const char* kind, const char* memory, bool async) -> const Row& {
    for (const Row& row : table.rows) {
      if (cell(table, row, "kind") == text_value(kind) && cell(table, row, "memory") == text_value(memory) &&
          cell(table, row, "async") == Value(async))
        return row;
    }
    ADD_FAILURE() << kind << " " << memory;
    return table.rows[0];
  };
  EXPECT_EQ(cell(table, find("HtoD", "pinned", true), "bytes"), whole(64));
  EXPECT_EQ(cell(table, find("HtoD", "pageable", true), "bytes"), whole(36));
  EXPECT_EQ(cell(table, find("HtoD", "pageable", true), "count"), whole(2));
  EXPECT_EQ(cell(table, find("DtoH", "pinned", false), "bytes"), whole(16));
  EXPECT_EQ(cell(table, find("DtoD", "device", false), "bytes"), whole(8));
  EXPECT_EQ(metric(loaded, "copies"), whole(5));
  EXPECT_EQ(metric(loaded, "copy_bytes"), whole(124));
}

// XLA calls cuMemcpyDtoHAsync with a source in pinned memory: unified addressing takes the address's word.
TEST(CopiesReport, TheAddressIsBelievedBeforeTheCallsName) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  allocate(trace, main, AllocKind::Device, 0x10000, 4096, 1000, 1010);
  allocate(trace, main, AllocKind::Host, 0x20000, 4096, 1020, 1030);
  copy(trace, main, CopyKind::DtoH, 0x90000, 0x20000 + 8, 64, 2000, true);
  copy(trace, main, CopyKind::HtoD, 0x20000, 0x90000, 32, 2200, true);
  copy(trace, main, CopyKind::DtoH, 0x90000, 0x10000, 16, 2400, true);
  std::map<TransferKind, u64> bytes;
  for (const CopyGroup& group : trace.load().copies) bytes[group.kind] += group.bytes;
  EXPECT_EQ(bytes, (std::map<TransferKind, u64>{{TransferKind::DtoH, 16}, {TransferKind::HtoH, 96}}));
}

TEST(CopiesReport, DoesNotCallMemoryPageableWhenAllocationsMayBeMissing) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.info("option.delay_ns", "5000");
  copy(trace, main, CopyKind::HtoD, 0x10000, 0x90000, 32, 2200, true);
  const Table table = copies_report(trace.load_all());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, table.rows[0], "kind"), text_value("HtoD"));
  EXPECT_TRUE(is_null(cell(table, table.rows[0], "memory")));
}

TEST(MemoryReport, FollowsPeaksPoolsAndReuseAcrossThreads) {
  TraceBuilder trace;
  const Thread a = trace.thread(100), b = trace.thread(101);
  trace.device(0, 1000000, 0xc0);
  allocate(trace, a, AllocKind::Device, 0x1000, 100, 1000, 1010);
  allocate(trace, a, AllocKind::Device, 0x2000, 300, 1100, 1110);
  // b frees 0x2000; before its call returns, a is given the same address.
  give_back(trace, b, AllocKind::Device, 0x2000, 1200, 1400);
  allocate(trace, a, AllocKind::Device, 0x2000, 50, 1250, 1300);
  allocate(trace, a, AllocKind::Managed, 0x9000, 20, 1500, 1510);
  give_back(trace, a, AllocKind::Device, 0x1000, 1600, 1610);
  const LoadedRun loaded = trace.load_all();
  const Table memory = memory_report(loaded), timeline = memory_timeline_report(loaded),
              peak = memory_peak_report(loaded);
  const Row& device = row_with(memory, "pool", text_value("device"));
  EXPECT_EQ(cell(memory, device, "allocations"), whole(3));
  EXPECT_EQ(cell(memory, device, "frees"), whole(2));
  EXPECT_EQ(cell(memory, device, "peak_bytes"), whole(400));
  EXPECT_EQ(cell(memory, device, "peak_at_ns"), whole(1110));
  EXPECT_EQ(cell(memory, device, "live_at_end_bytes"), whole(50));
  EXPECT_EQ(cell(memory, device, "capacity_bytes"), whole(1000000));
  EXPECT_TRUE(is_null(cell(memory, device, "fragmentation")));
  EXPECT_EQ(metric(loaded, "peak_memory_bytes"), whole(400));
  ASSERT_EQ(timeline.rows.size(), 6u);
  EXPECT_EQ(cell(timeline, timeline.rows[2], "at_ns"), whole(1200));
  EXPECT_EQ(cell(timeline, timeline.rows[2], "allocated_bytes"), whole(100));
  EXPECT_EQ(cell(timeline, timeline.rows[3], "allocated_bytes"), whole(150));
  ASSERT_EQ(peak.rows.size(), 1u);
  EXPECT_EQ(cell(peak, peak.rows[0], "kind"), text_value("device"));
  EXPECT_EQ(cell(peak, peak.rows[0], "bytes"), whole(400));
  EXPECT_EQ(cell(peak, peak.rows[0], "count"), whole(2));
}

TEST(MemoryReport, PhysicalMemoryLivesUntilReleasedAndUnmapped) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  allocate(trace, main, AllocKind::VmmReserve, 0x100000, 1 << 20, 1000, 1010);  // addresses only
  allocate(trace, main, AllocKind::VmmCreate, 0x77, 2048, 1100, 1110);
  trace.add<Alloc>(main, "cuMemMap", 1200, 1210, [](auto& r) {
    r.kind = static_cast<u32>(AllocKind::VmmMap), r.address = 0x100000, r.bytes = 2048, r.pool = 0x77, r.device = -1;
  });
  give_back(trace, main, AllocKind::VmmCreate, 0x77, 1300, 1310);  // still mapped: still there
  trace.add<Free>(main, "cuMemUnmap", 1400, 1410,
                  [](auto& r) { r.kind = static_cast<u32>(AllocKind::VmmMap), r.address = 0x100000, r.bytes = 2048; });
  const LoadedRun loaded = trace.load_all();
  const Table memory = memory_report(loaded), timeline = memory_timeline_report(loaded);
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(cell(memory, memory.rows[0], "pool"), text_value("vmm"));
  EXPECT_EQ(cell(memory, memory.rows[0], "peak_bytes"), whole(2048));
  EXPECT_EQ(cell(memory, memory.rows[0], "live_at_end_bytes"), whole(0));
  ASSERT_EQ(timeline.rows.size(), 2u);
  EXPECT_EQ(cell(timeline, timeline.rows[1], "at_ns"), whole(1400));
}

// As NCCL frees: it asks whose memory an address is, which is one more reference, gives that back, unmaps, and releases its own.
TEST(MemoryReport, ARetainedHandleIsReleasedTwice) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  allocate(trace, main, AllocKind::VmmCreate, 0x77, 2048, 1100, 1110);
  trace.add<Alloc>(main, "cuMemMap", 1200, 1210, [](auto& r) {
    r.kind = static_cast<u32>(AllocKind::VmmMap), r.address = 0x100000, r.bytes = 2048, r.pool = 0x77, r.device = -1;
  });
  allocate(trace, main, AllocKind::VmmCreate, 0x77, 0, 1300, 1310);
  give_back(trace, main, AllocKind::VmmCreate, 0x77, 1320, 1330);
  trace.add<Free>(main, "cuMemUnmap", 1400, 1410,
                  [](auto& r) { r.kind = static_cast<u32>(AllocKind::VmmMap), r.address = 0x100000, r.bytes = 2048; });
  give_back(trace, main, AllocKind::VmmCreate, 0x77, 1500, 1510);
  const LoadedRun loaded = trace.load_all();
  EXPECT_EQ(loaded.processes[0].unmatched_frees, 0u);
  const Table memory = memory_report(loaded), timeline = memory_timeline_report(loaded);
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(cell(memory, memory.rows[0], "allocations"), whole(1));
  EXPECT_EQ(cell(memory, memory.rows[0], "frees"), whole(1));
  EXPECT_EQ(cell(memory, memory.rows[0], "live_at_end_bytes"), whole(0));
  ASSERT_EQ(timeline.rows.size(), 2u);
  EXPECT_EQ(cell(timeline, timeline.rows[1], "at_ns"), whole(1500));
}

}  // namespace
}  // namespace gputrace::test
