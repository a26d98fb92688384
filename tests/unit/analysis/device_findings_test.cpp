// Findings and reports on device time: programs with a known trouble, and the same without it, numbers by hand.
#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/device_builder.h"
#include "tests/unit/finding_lookup.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;
constexpr Nanos kUs = 1000, kMs = 1'000'000;

// One thread, one stream, a device that starts a kernel 5 us after its launch's call begins, when it is free.
class Script {
 public:
  Script() : main_(trace_.thread(100)) {
    trace_.name_function(0xf1, "relu_kernel", 0xa0);
    trace_.name_function(0xf2, "ampere_sgemm_128x64_nn", 0xa0);
    names_[0] = trace_.text("relu_kernel"), names_[1] = trace_.text("ampere_sgemm_128x64_nn");
    trace_.reading(now_);
  }
  void run(Nanos call, Nanos kernel, int which = 0) {
    trace_.launch(main_, 0xf1 + static_cast<u64>(which), now_, now_ + call);
    const Nanos start = std::max(now_ + 5 * kUs, free_);
    ran_.push_back({now_, now_ + call, start, start + kernel, which});
    now_ += call;
    free_ = start + kernel;
  }
  void wait() {
    const Nanos end = std::max(now_, free_) + 2 * kUs;
    trace_.add<Sync>(main_, "cuStreamSynchronize", now_, end,
                     [](auto& r) { r.what = static_cast<u32>(SyncKind::Stream); });
    now_ = end;
  }
  void sleep(Nanos time) { now_ += time; }
  // CUPTI empties a buffer in the program's thread.
  void held(Nanos time) {
    trace_.overhead(1u << 16, 100, now_, now_ + time, now_ + time);
    now_ += time;
  }
  void copy(Nanos call, bool async, MemoryKind host) {
    trace_.add<Copy>(main_, async ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyHtoD_v2", now_, now_ + call, [&](auto& r) {
      r.kind = static_cast<u8>(CopyKind::HtoD), r.destination = 0x10000, r.source = 0x90000, r.bytes = 1 << 16;
      r.source_memory = static_cast<u8>(host), r.asynchronous = async, r.context = 0xc0;
    });
    moved(call, 1 << 16, async ? kCallback_cuMemcpyHtoDAsync_v2 : kCallback_cuMemcpyHtoD_v2, 1);
    now_ += call;
  }
  void allocate(Nanos call, AllocKind kind = AllocKind::Device) {
    trace_.add<Alloc>(main_, "cuMemAlloc_v2", now_, now_ + call, [&](auto& r) {
      r.kind = static_cast<u32>(kind), r.address = 0x100000 + ran_.size() * 256, r.bytes = 64, r.device = 0;
    });
    now_ += call;
  }
  void set(Nanos call, bool async) {
    trace_.add<Memset>(main_, async ? "cuMemsetD8Async" : "cuMemsetD8_v2", now_, now_ + call, [&](auto& r) {
      r.destination = 0x10000, r.bytes = 4096, r.context = 0xc0, r.asynchronous = async, r.element_bytes = 1;
    });
    moved(call, 4096, async ? kCallback_cuMemsetD8Async : kCallback_cuMemsetD8_v2, 0);
    now_ += call;
  }
  void fetch(Nanos call) {
    trace_.add<Copy>(main_, "cuMemcpyDtoHAsync_v2", now_, now_ + call, [&](auto& r) {
      r.kind = static_cast<u8>(CopyKind::DtoH), r.destination = 0x90000, r.source = 0x10000, r.bytes = 4;
      r.destination_memory = static_cast<u8>(MemoryKind::Pinned), r.asynchronous = 1, r.context = 0xc0;
    });
    moved(call, 4, kCallback_cuMemcpyDtoHAsync_v2, 2);
    now_ += call;
  }
  LoadedRun load() {
    const Nanos end = std::max(now_, free_) + 10 * kUs;
    u32 correlation = 0;
    for (const Ran& each : ran_) trace_.key(100, ++correlation, each.begin, each.end, end);
    correlation = 0;
    for (const Ran& each : ran_) trace_.kernel(++correlation, names_[each.which], each.start, each.finish, end);
    for (const Moved& each : moved_) {
      trace_.key(100, ++correlation, each.begin, each.end, end, each.callback);
      if (each.kind)
        trace_.copy(correlation, each.kind, each.bytes, each.at, each.at, end);
      else
        trace_.memset(correlation, each.bytes, each.at, each.at, end);
    }
    trace_.reading(end + kUs);
    return trace_.load_all();
  }

 private:
  struct Ran {
    Nanos begin, end, start, finish;
    int which;
  };
  // The device does it in no time, right behind the last kernel. `kind`: CUPTI's of a copy; 0: a memset.
  void moved(Nanos call, u64 bytes, u32 callback, u8 kind) {
    moved_.push_back({now_, now_ + call, std::max(free_, now_), bytes, callback, kind});
  }
  struct Moved {
    Nanos begin, end, at;
    u64 bytes;
    u32 callback;
    u8 kind;
  };
  DeviceBuilder trace_;
  Thread main_;
  u64 names_[2] = {};
  Nanos now_ = kMs, free_ = 0;
  std::vector<Ran> ran_;
  std::vector<Moved> moved_;
};

TEST(DeviceFindings, LaunchBoundAndShortKernels) {
  Script slow, fast;
  for (int i = 0; i < 200; ++i) {
    slow.run(50 * kUs, 10 * kUs);  // idle 40 us of every 50
    fast.run(5 * kUs, 100 * kUs);
  }
  const auto findings = find_findings(slow.load());
  const Finding* bound = find(findings, "launch-bound");
  ASSERT_NE(bound, nullptr);
  EXPECT_EQ(bound->severity, Severity::Warning);
  EXPECT_EQ(bound->gain_ns, 199u * 40 * kUs);
  EXPECT_EQ(evidence(*bound, "gaps"), whole(199));
  EXPECT_EQ(evidence(*bound, "gain_ns"), whole(199 * 40 * kUs));
  const Finding* brief = find(findings, "short-kernels");
  ASSERT_NE(brief, nullptr);
  EXPECT_EQ(evidence(*brief, "short"), whole(200));
  EXPECT_EQ(evidence(*brief, "excess_ns"), whole(200 * 40 * kUs));
  EXPECT_EQ(evidence(*brief, "kernel_mean_ns"), whole(10 * kUs));
  EXPECT_EQ(evidence(*brief, "launch_mean_ns"), whole(50 * kUs));
  EXPECT_EQ(brief->gain_ns, 199u * 40 * kUs);  // no more than the device waited
  const auto none = find_findings(fast.load());
  EXPECT_EQ(find(none, "launch-bound"), nullptr);
  EXPECT_EQ(find(none, "short-kernels"), nullptr);
}

TEST(DeviceFindings, NeedlessSynchronizationButNotBeforeAResultIsFetched) {
  Script loop, fetching, rare;
  for (int i = 0; i < 21; ++i) {
    loop.run(4 * kUs, 100 * kUs);
    loop.wait();
    fetching.run(4 * kUs, 100 * kUs);
    fetching.wait();
    fetching.fetch(3 * kUs);
    rare.run(4 * kUs, 100 * kUs);
  }
  rare.wait();
  const LoadedRun loaded = loop.load();
  const auto findings = find_findings(loaded);
  const Finding* finding = find(findings, "needless-synchronization");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "waits"), whole(21));
  EXPECT_EQ(evidence(*finding, "before_launches"), whole(20));
  EXPECT_EQ(evidence(*finding, "gpu_idle_ns"), whole(20 * 2 * kUs));  // to return
  const Table sync = sync_report(loaded);
  ASSERT_EQ(sync.rows.size(), 1u);
  EXPECT_EQ(cell(sync, sync.rows[0], "gpu_idle_ns"), whole(20 * 2 * kUs));
  EXPECT_EQ(cell(sync, sync.rows[0], "gaps"), whole(20));
  EXPECT_EQ(find(find_findings(fetching.load()), "needless-synchronization"), nullptr);
  EXPECT_EQ(find(find_findings(rare.load()), "needless-synchronization"), nullptr);
}

TEST(DeviceFindings, SynchronousMemsets) {
  Script loop, async;
  for (int i = 0; i < 20; ++i) {
    loop.run(4 * kUs, 10 * kUs);
    loop.set(30 * kUs, false);
    async.run(4 * kUs, 10 * kUs);
    async.set(30 * kUs, true);
  }
  const auto findings = find_findings(loop.load());
  const Finding* finding = find(findings, "synchronous-memsets");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "count"), whole(20));
  EXPECT_EQ(evidence(*finding, "bytes"), whole(20 * 4096));
  EXPECT_EQ(finding->gain_ns, 19u * 19 * kUs);  // a kernel ends 15 us after its call began, the next is called after 34
  EXPECT_EQ(find(find_findings(async.load()), "synchronous-memsets"), nullptr);
}

// Of the call of 30 us, 19 us lie in each gap.
TEST(DeviceFindings, AllocationAndCopiesCostWhatTheDeviceWaitedForThem) {
  Script allocating, pooled, pageable, pinned, blocking;
  for (int i = 0; i < 20; ++i) {
    for (Script* each : {&allocating, &pooled, &pageable, &pinned, &blocking}) each->run(4 * kUs, 10 * kUs);
    allocating.allocate(30 * kUs);
    pooled.allocate(30 * kUs, AllocKind::Pool);
    pageable.copy(30 * kUs, true, MemoryKind::Pageable);
    pinned.copy(30 * kUs, true, MemoryKind::Pinned);
    blocking.copy(30 * kUs, false, MemoryKind::Pinned);
  }
  const auto gain = [](Script& script, const char* id) {
    const auto findings = find_findings(script.load());
    const Finding* finding = find(findings, id);
    return finding ? static_cast<i64>(finding->gain_ns) : -1;
  };
  EXPECT_EQ(gain(allocating, "allocation-in-loop"), 19 * 19 * kUs);
  EXPECT_EQ(gain(pooled, "allocation-in-loop"), -1);
  EXPECT_EQ(gain(pageable, "pageable-async-copies"), 19 * 19 * kUs);
  EXPECT_EQ(gain(pinned, "pageable-async-copies"), -1);
  EXPECT_EQ(gain(blocking, "synchronous-copies"), 19 * 19 * kUs);
  EXPECT_EQ(gain(pinned, "synchronous-copies"), -1);
}

// A wait of 12 us that reaches 2 us into a gap of 16 us, in which the host then works for 9 us: each has its part.
TEST(DeviceFindings, AWaitHasThePartOfTheGapInWhichItWent) {
  Script script;
  for (int i = 0; i < 40; ++i) {
    script.run(4 * kUs, 16 * kUs);  // ends 21 us after its call began
    script.sleep(7 * kUs);
    script.wait();  // 11 us to 23 us
    script.sleep(9 * kUs);
    script.run(4 * kUs, 16 * kUs);
    script.sleep(40 * kUs);
  }
  const LoadedRun loaded = script.load();
  const auto& device = loaded.processes[0].device.devices.at(0);
  const IdleSum& sum = device.causes[static_cast<unsigned>(IdleCause::Synchronization)];
  EXPECT_EQ(sum.count, 40u);
  EXPECT_EQ(sum.total_ns, 40u * 2 * kUs);
  EXPECT_EQ(device.causes[static_cast<unsigned>(IdleCause::Host)].total_ns, (40u * 9 + 39 * 23) * kUs);
  const Table sync = sync_report(loaded);
  ASSERT_EQ(sync.rows.size(), 1u);
  EXPECT_EQ(cell(sync, sync.rows[0], "total_ns"), whole(40 * 12 * kUs));
  EXPECT_EQ(cell(sync, sync.rows[0], "gpu_idle_ns"), whole(40 * 2 * kUs));
  EXPECT_EQ(find_findings(loaded).empty(), false);
  const auto findings = find_findings(loaded);
  const Finding* finding = find(findings, "needless-synchronization");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->gain_ns, 40u * 2 * kUs);
}

TEST(DeviceFindings, GapsOfTheProfilerAreNotTheProgramsButAreNamed) {
  Script script;
  for (int i = 0; i < 3; ++i) {
    script.run(4 * kUs, 10 * kUs);
    script.held(2 * kMs);
  }
  script.run(4 * kUs, 10 * kUs);
  EXPECT_EQ(find(find_findings(script.load()), "idle-gaps"), nullptr);
  script.sleep(3 * kMs);
  script.run(4 * kUs, 10 * kUs);
  const auto findings = find_findings(script.load());
  const Finding* finding = find(findings, "idle-gaps");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "count"), whole(1));
  EXPECT_EQ(evidence(*finding, "left_out_profiler_ns"), whole(3 * (2 * kMs + 4 * kUs - 10 * kUs)));
}

TEST(DeviceFindings, GapsAboveAMillisecondWithTheirCause) {
  Script late, soon;
  for (int i = 0; i < 5; ++i) {
    late.run(4 * kUs, 10 * kUs);
    late.sleep(3 * kMs);
    soon.run(4 * kUs, 10 * kUs);
    soon.sleep(900 * kUs);
  }
  const auto findings = find_findings(late.load());
  const Finding* finding = find(findings, "idle-gaps");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "count"), whole(4));
  EXPECT_EQ(evidence(*finding, "cause"), text_value("host"));
  EXPECT_EQ(evidence(*finding, "total_ns"), whole(4 * (3 * kMs + 4 * kUs - 10 * kUs)));
  EXPECT_EQ(evidence(*finding, "threshold_ns"), whole(kMs));
  EXPECT_EQ(find(find_findings(soon.load()), "idle-gaps"), nullptr);
}

TEST(DeviceFindings, GraphCandidatesButNotWithAnAllocationAmongThem) {
  Script loop, allocating, changing;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 5; ++k) {
      loop.run(20 * kUs, 5 * kUs, k % 2);
      allocating.run(20 * kUs, 5 * kUs, k % 2);
      changing.run(20 * kUs, 5 * kUs, (i >> k) % 2);  // another sequence each time
      if (k == 2) allocating.allocate(10 * kUs);
    }
    loop.wait();
    allocating.wait();
    changing.wait();
  }
  const auto findings = find_findings(loop.load());
  const Finding* finding = find(findings, "graph-candidates");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "launches"), whole(5));
  EXPECT_EQ(evidence(*finding, "times"), whole(20));
  EXPECT_EQ(evidence(*finding, "sequences"), whole(1));
  EXPECT_EQ(evidence(*finding, "saved_host_ns"), whole(20 * 4 * 20 * kUs));
  EXPECT_EQ(find(find_findings(allocating.load()), "graph-candidates"), nullptr);
  EXPECT_EQ(find(find_findings(changing.load()), "graph-candidates"), nullptr);
}

TEST(DeviceFindings, OfOneSeverityTheLargestGainComesFirst) {
  Script script;
  for (int i = 0; i < 200; ++i) script.run(50 * kUs, 10 * kUs);
  script.sleep(100 * kMs);
  script.run(5 * kUs, 10 * kUs);
  const auto findings = find_findings(script.load());
  ASSERT_GE(findings.size(), 2u);
  EXPECT_EQ(findings[0].id, "idle-gaps");
  EXPECT_EQ(findings[1].id, "short-kernels");  // launch-bound is a hint here: 7 % of the span
}

TEST(IdleCauses, AddUpToAllIdleTime) {
  Script script;
  for (int i = 0; i < 10; ++i) {
    script.run(4 * kUs, 20 * kUs);
    script.wait();
    script.run(4 * kUs, 20 * kUs);
    script.sleep(500 * kUs);
    script.run(90 * kUs, 20 * kUs);
    script.allocate(70 * kUs);
  }
  const LoadedRun loaded = script.load();
  const Table causes = idle_causes_report(loaded);
  i64 total = 0, count = 0;
  double share = 0;
  for (const Row& row : causes.rows) {
    total += std::get<i64>(cell(causes, row, "total_ns"));
    count += std::get<i64>(cell(causes, row, "count"));
    share += std::get<double>(cell(causes, row, "share"));
  }
  const DeviceTimes& device = loaded.processes[0].device.devices.at(0);
  EXPECT_EQ(static_cast<u64>(total), device.idle_ns);
  EXPECT_EQ(device.busy_ns + device.idle_ns, device.span_ns());
  EXPECT_GE(static_cast<u64>(count), device.gaps);  // a gap has several parts
  EXPECT_NEAR(share, 1.0, 1e-12);
  EXPECT_EQ(cell(causes, row_with(causes, "cause", text_value("host")), "count"), whole(10));
  EXPECT_EQ(cell(causes, row_with(causes, "cause", text_value("synchronization")), "count"), whole(10));
  EXPECT_EQ(cell(causes, row_with(causes, "cause", text_value("allocation")), "worst_call"), text_value("cuMemAlloc"));
}

TEST(Categories, SharesTreeAndRules) {
  Script script;
  for (int i = 0; i < 10; ++i) {
    script.run(4 * kUs, 30 * kUs, 1);
    script.run(4 * kUs, 10 * kUs, 0);
  }
  const LoadedRun loaded = script.load();
  const Table table = categories_report(loaded);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, table.rows[0], "category"), text_value("gemm"));
  EXPECT_EQ(cell(table, table.rows[0], "share"), Value(0.75));
  EXPECT_EQ(cell(table, table.rows[0], "total_ns"), whole(300 * kUs));
  EXPECT_EQ(cell(table, table.rows[1], "category"), text_value("elementwise"));
  EXPECT_EQ(cell(table, table.rows[1], "launches"), whole(10));
  EXPECT_EQ(cell(table, table.rows[1], "rule"), text_value("its name has \"relu\""));
  const Table tree = category_tree_report(loaded);
  ASSERT_EQ(tree.rows.size(), 6u);
  EXPECT_EQ(cell(tree, tree.rows[0], "what"), text_value("gemm"));
  EXPECT_EQ(cell(tree, tree.rows[1], "what"), text_value("cublas gemm 128x64 f32 nn"));
  EXPECT_EQ(cell(tree, tree.rows[1], "level"), whole(1));
  EXPECT_EQ(cell(tree, tree.rows[2], "what"), text_value("grid 8,1,1  block 256,1,1"));
  EXPECT_EQ(cell(tree, tree.rows[2], "total_ns"), whole(300 * kUs));
}

}  // namespace
}  // namespace gputrace::test
