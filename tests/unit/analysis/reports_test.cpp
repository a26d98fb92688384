// Traces with a known answer, number by number, for every report but those of memory and copies.
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "analysis/run/quality.h"
#include "analysis/run/runs.h"
#include "tests/unit/analysis/reported_calls.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

TEST(KernelsReport, CountsExecutionsAndTellsTheFunction) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.device(0, 80ull << 30, 0xc0);
  trace.name_function(0xf1, "_Z5scalePfi", 0xa0);
  trace.add<FunctionFacts>(TraceBuilder::definitions(), "", 3, 3, [](auto& r) {
    r.function = 0xf1, r.registers = 32, r.static_shared_bytes = 4096, r.local_bytes = 16, r.max_threads = 1024;
  });
  for (int i = 0; i < 5; ++i) launch(trace, main, 0xf1, 1000 + i * 100, 1050 + i * 100);
  launch(trace, main, 0xf1, 2000, 2010, 0, 1);                // failed: no launch
  launch(trace, main, 0xf1, 2100, 2110, kLaunchCaptured, 0);  // captured: a node, no launch
  const LoadedRun loaded = trace.load_all();
  const Table table = kernels_report(loaded);
  ASSERT_EQ(table.rows.size(), 1u);
  const Row& row = table.rows[0];
  EXPECT_EQ(cell(table, row, "kernel"), text_value("scale(float*, int)"));
  EXPECT_EQ(cell(table, row, "symbol"), text_value("_Z5scalePfi"));
  EXPECT_EQ(cell(table, row, "launches"), whole(5));
  EXPECT_EQ(cell(table, row, "device"), whole(0));
  EXPECT_EQ(cell(table, row, "grid"), text_value("8,1,1"));
  EXPECT_EQ(cell(table, row, "block"), text_value("256,1,1"));
  EXPECT_EQ(cell(table, row, "registers"), whole(32));
  EXPECT_EQ(cell(table, row, "static_shared_bytes"), whole(4096));
  EXPECT_EQ(cell(table, row, "dynamic_shared_bytes"), whole(512));
  EXPECT_EQ(cell(table, row, "local_bytes"), whole(16));
  EXPECT_EQ(cell(table, row, "occupancy"),
            Value(1.0));  // 8 blocks of 8 warps: by threads, by registers 8, by shared memory 41
  EXPECT_TRUE(is_null(cell(table, row, "total_ns")));
  EXPECT_TRUE(is_null(cell(table, row, "share")));
  EXPECT_EQ(metric(loaded, "launches"), whole(5));
  EXPECT_EQ(metric(loaded, "kernels"), whole(5));
  const Table launches = launches_report(loaded);
  ASSERT_EQ(launches.rows.size(), 1u);
  EXPECT_EQ(cell(launches, launches.rows[0], "launches"), whole(5));
  EXPECT_EQ(cell(launches, launches.rows[0], "api_mean_ns"), whole(50));
  EXPECT_TRUE(is_null(cell(launches, launches.rows[0], "latency_mean_ns")));
}

TEST(KernelsReport, AHandleThatIsGivenOutAgainIsAnotherKernel) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "first", 0xa0, 500);
  launch(trace, main, 0xf1, 1000, 1010);
  launch(trace, main, 0xf1, 1100, 1110);
  trace.name_function(0xf1, "second", 0xa1, 2000);
  launch(trace, main, 0xf1, 3000, 3010);
  const Table table = kernels_report(trace.load_all());
  EXPECT_EQ(cell(table, row_with(table, "kernel", text_value("first")), "launches"), whole(2));
  EXPECT_EQ(cell(table, row_with(table, "kernel", text_value("second")), "launches"), whole(1));
}

// Nobody named the function that has its handle now. A module that has no functions takes nothing with it.
TEST(KernelsReport, AHandleOfAModuleThatIsGoneIsAnotherKernel) {
  for (const ModuleAct gone : {ModuleAct::Unload, ModuleAct::Module}) {  // unloaded, or its handle given to the next
    TraceBuilder trace;
    const Thread main = trace.thread(100);
    const auto module = [&](ModuleAct what, u64 handle, Nanos at) {
      trace.add<ModuleLoad>(TraceBuilder::definitions(), "", at, at,
                            [&](auto& r) { r.module = handle, r.what = static_cast<u32>(what), r.thread = 100; });
    };
    module(ModuleAct::Module, 0xa1, 400);
    module(ModuleAct::Module, 0xb0, 410);
    trace.name_function(0xf1, "first", 0xa1, 500);
    launch(trace, main, 0xf1, 1000, 1010);
    module(gone, 0xb0, 1050);
    launch(trace, main, 0xf1, 1100, 1110);
    module(gone, 0xa1, 2000);
    launch(trace, main, 0xf1, 3000, 3010);
    const Table table = kernels_report(trace.load_all());
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(cell(table, row_with(table, "kernel", text_value("first")), "launches"), whole(2));
    EXPECT_EQ(cell(table, table.rows[1], "launches"), whole(1));
  }
}

TEST(GraphsReport, MultipliesNodesByReplaysPerVersion) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "a", 0xa0);
  trace.name_function(0xf2, "b", 0xa0);
  const auto instantiate = [&](Nanos at, u32 flags, u32 nodes) {
    trace.add<GraphInstantiate>(main, "cuGraphInstantiate", at, at + 10, [&](auto& r) {
      r.graph = 0x61, r.exec = 0xe1, r.nodes = nodes, r.kernel_nodes = nodes, r.flags = flags;
    });
  };
  const auto node = [&](Nanos at, u64 handle, u64 function, u32 flags) {
    trace.add<GraphNode>(main, "cuGraphInstantiate", at, at + 10, [&](auto& r) {
      r.exec = 0xe1, r.node = handle, r.function = function, r.kind = 0, r.grid_x = r.grid_y = r.grid_z = 1;
      r.block_x = 32, r.block_y = r.block_z = 1, r.flags = flags;
    });
  };
  const auto replay = [&](Nanos at, u32 flags = 0) {
    trace.add<GraphLaunch>(main, "cuGraphLaunch", at, at + 7, [&](auto& r) { r.exec = 0xe1, r.flags = flags; });
  };
  instantiate(1000, 0, 3);
  node(1000, 1, 0xf1, 0), node(1000, 2, 0xf1, 0), node(1000, 3, 0xf2, 0);
  for (int i = 0; i < 10; ++i) replay(2000 + i * 10);
  replay(2500, kLaunchCaptured);  // becomes a child of another graph: nothing runs
  instantiate(3000, 1, 1);        // an update: from now on one node
  node(3000, 4, 0xf2, 0);
  for (int i = 0; i < 4; ++i) replay(4000 + i * 10);
  const LoadedRun loaded = trace.load_all();
  const Table kernels = kernels_report(loaded), graphs = graphs_report(loaded), api = api_report(loaded);
  EXPECT_EQ(cell(kernels, row_with(kernels, "kernel", text_value("a")), "launches"), whole(20));
  EXPECT_EQ(cell(kernels, row_with(kernels, "kernel", text_value("b")), "launches"), whole(14));
  ASSERT_EQ(graphs.rows.size(), 1u);
  EXPECT_EQ(cell(graphs, graphs.rows[0], "instantiations"), whole(1));
  EXPECT_EQ(cell(graphs, graphs.rows[0], "updates"), whole(1));
  EXPECT_EQ(cell(graphs, graphs.rows[0], "launches"), whole(14));
  EXPECT_EQ(cell(graphs, graphs.rows[0], "kernel_nodes"), whole(1));
  EXPECT_EQ(cell(graphs, graphs.rows[0], "api_mean_ns"), whole(7));
  EXPECT_EQ(metric(loaded, "launches"), whole(14));
  EXPECT_EQ(metric(loaded, "kernels"), whole(34));
  // The nodes are records of the instantiating call: it counts once.
  EXPECT_EQ(cell(api, row_with(api, "call", text_value("cuGraphInstantiate")), "calls"), whole(2));
}

TEST(SyncReport, AWaitThatFailedIsNoWait) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  Nanos at = 1000;
  for (const u16 result : {u16{0}, u16{700}, u16{0}}) {
    trace.add<Sync>(
        main, "cuCtxSynchronize", at, at + 10, [](auto&) {}, result);
    at += 20;
  }
  const Table sync = sync_report(trace.load_all());
  ASSERT_EQ(sync.rows.size(), 1u);
  EXPECT_EQ(cell(sync, sync.rows[0], "count"), whole(2));
}

TEST(ApiReport, SelfTimeLeavesOutNestedCallsOfTheSameThread) {
  TraceBuilder trace;
  const Thread a = trace.thread(100), b = trace.thread(101);
  trace.add_call(a, "cuLaunchKernel", 1100, 1200);  // inside the next
  trace.add_call(a, "cuCtxGetId", 1210, 1220);      // inside too
  trace.add_call(a, "cudaLaunchKernel", 1000, 1300);
  trace.add_call(b, "cuLaunchKernel", 1100, 1150);  // at the same time, elsewhere
  trace.add_call(a, "cuLaunchKernel", 2000, 2040, 1);
  trace.add_call(a, "cuStreamQuery", 2100, 2110, 600);  // not ready: an answer
  const Table table = api_report(trace.load_all());
  const Row& runtime = row_with(table, "call", text_value("cudaLaunchKernel"));
  EXPECT_EQ(cell(table, runtime, "level"), text_value("runtime"));
  EXPECT_EQ(cell(table, runtime, "total_ns"), whole(300));
  EXPECT_EQ(cell(table, runtime, "self_ns"), whole(190));
  const Row& driver = row_with(table, "call", text_value("cuLaunchKernel"));
  EXPECT_EQ(cell(table, driver, "calls"), whole(3));
  EXPECT_EQ(cell(table, driver, "errors"), whole(1));
  EXPECT_EQ(cell(table, driver, "total_ns"), whole(190));
  EXPECT_EQ(cell(table, driver, "self_ns"), whole(190));
  EXPECT_EQ(cell(table, driver, "mean_ns"), whole(63));
  EXPECT_EQ(cell(table, driver, "max_ns"), whole(100));
  EXPECT_EQ(cell(table, row_with(table, "call", text_value("cuStreamQuery")), "errors"), whole(0));
}

TEST(ApiReport, ADefinitionIsNestedInTheThreadThatItNames) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  const auto load = [&](Nanos begin, Nanos end, u32 thread) {
    trace.add<ModuleLoad>(TraceBuilder::definitions(), "cuModuleLoadData", begin, end,
                          [&](auto& r) { r.module = 0xa0, r.what = 1, r.thread = thread; });
  };
  load(1010, 1200, 100);
  load(1020, 1100, 0);  // of a thread that is not known: in nobody's time
  trace.add_call(main, "cudaModuleLoad", 1000, 1300);
  const Table table = api_report(trace.load_all());
  EXPECT_EQ(cell(table, row_with(table, "call", text_value("cudaModuleLoad")), "self_ns"), whole(110));
  EXPECT_EQ(cell(table, row_with(table, "call", text_value("cuModuleLoadData")), "self_ns"), whole(270));
}

TEST(SyncReport, CountsDriverLevelWaits) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.add<Sync>(main, "cuCtxSynchronize", 1010, 1200, [](auto& r) { r.what = 1; });
  trace.add_call(main, "cudaDeviceSynchronize", 1000, 1210);
  trace.add<Sync>(main, "cuCtxSynchronize", 2000, 2010, [](auto& r) { r.what = 1; });
  const Table table = sync_report(trace.load_all());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, table.rows[0], "count"), whole(2));
  EXPECT_EQ(cell(table, table.rows[0], "total_ns"), whole(200));
  EXPECT_TRUE(is_null(cell(table, table.rows[0], "gpu_idle_ns")));
}

TEST(QualityReport, ConservesPerThreadAndNamesTheCallInFlight) {
  TraceBuilder trace;
  const Thread a = trace.thread(100), b = trace.thread(101);
  trace.add_call(a, "cuInit", 1000, 1010);
  trace.add_call(b, "cuInit", 1000, 1010);
  trace.drop(b, DropReason::RingFull, 7);
  trace.drop(b, DropReason::Disk, 2);
  trace.in_flight(a, "cuLaunchKernel", 3000);
  trace.end(EndReason::Vanished);
  const LoadedRun loaded = trace.load_all();
  const Report report = make_report(loaded, {});
  EXPECT_EQ(report.coverage.dropped, 9u);
  EXPECT_EQ(report.coverage.records, 2u);
  const Table& table = *report.table("quality");
  const Row& row = row_with(table, "tid", whole(101));
  EXPECT_EQ(cell(table, row, "seen"), whole(10));
  EXPECT_EQ(cell(table, row, "stored"), whole(1));
  EXPECT_EQ(cell(table, row, "dropped"), whole(9));
  EXPECT_EQ(cell(table, row, "reason"), text_value("ring full 7, disk full or size limit 2"));
  EXPECT_EQ(cell(table, row_with(table, "tid", whole(100)), "dropped"), whole(0));
  const Table& notes = *report.table("quality-notes");
  const std::string text = std::get<std::string>(cell(notes, row_with(notes, "what", text_value("in-flight")), "text"));
  EXPECT_EQ(text, "died inside cuLaunchKernel (thread 100, argument 0x5ea)");
}

TEST(QualityReport, FoldedForReadersOfText) {
  TraceBuilder trace;
  for (int i = 0; i < 30; ++i) {
    const Thread thread = trace.thread(100 + i);
    trace.add_call(thread, "cuInit", 1000 + i, 1010 + i);
    if (i >= 25) trace.drop(thread, DropReason::RingFull, static_cast<u64>(i));
  }
  const Report report = make_report(trace.load_all(), {});
  const Table& all = *report.table("quality");
  ASSERT_EQ(all.rows.size(), 31u) << "30, and the row of the threads without a slot";
  Table same = all;
  fold_quality(same, 31);
  EXPECT_EQ(same.rows, all.rows);

  Table folded = all;
  fold_quality(folded, 3);
  ASSERT_EQ(folded.rows.size(), 5u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cell(folded, folded.rows[i], "tid"), whole(129 - i)) << "those that lost most come first";
    EXPECT_EQ(cell(folded, folded.rows[i], "dropped"), whole(29 - i));
  }
  const Row &lossy = folded.rows[3], &rest = folded.rows[4];
  EXPECT_EQ(cell(folded, lossy, "thread"), text_value("(2 others with loss or inexact)"));
  EXPECT_EQ(cell(folded, lossy, "seen"), whole(2 + 25 + 26));
  EXPECT_EQ(cell(folded, lossy, "stored"), whole(2));
  EXPECT_EQ(cell(folded, lossy, "dropped"), whole(25 + 26));
  EXPECT_TRUE(is_null(cell(folded, lossy, "tid")));
  EXPECT_EQ(cell(folded, rest, "thread"), text_value("(26 others without loss)"));
  EXPECT_EQ(cell(folded, rest, "seen"), whole(25));
  EXPECT_EQ(cell(folded, rest, "dropped"), whole(0));
  EXPECT_EQ(cell(folded, rest, "exact"), Value(true));
}

TEST(Report, ATimeWindowCountsCallsThatBeginInIt) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "k", 0xa0);
  for (int i = 0; i < 10; ++i) launch(trace, main, 0xf1, 1000 + i * 100, 1050 + i * 100);
  TemporaryDirectory directory;
  trace.write(directory.file("t.gtrace"));
  LoadRequest request;
  request.files = {directory.file("t.gtrace")};
  request.from = 200, request.to = 500;  // after the first call
  auto loaded = load_run(request);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(metric(loaded.value(), "launches"), whole(3));
  EXPECT_EQ(metric(loaded.value(), "wall_ns"), whole(250));
}

TEST(Report, SeveralProcessesAddUpAndACopyOfAFileCountsOnce) {
  TemporaryDirectory directory;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder trace;
    const Thread main = trace.thread(100 + rank);
    trace.identity(1000 + rank, 5u + static_cast<u32>(rank));
    trace.info("rank", std::to_string(rank));
    trace.name_function(0xf1, "k", 0xa0);
    for (int i = 0; i <= rank; ++i)
      launch(trace, main, 0xf1, 1000 + i * 100 + rank * 1000, 1050 + i * 100 + rank * 1000);
    trace.write(directory.file("rank" + std::to_string(rank) + ".gtrace"));
    trace.write(directory.file("again" + std::to_string(rank) + ".gtrace"));
  }
  auto files = find_trace_files({directory.path()});
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files.value().size(), 4u);
  LoadRequest request;
  request.files = files.value();
  auto all = load_run(request);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(metric(all.value(), "processes"), whole(2));
  EXPECT_EQ(metric(all.value(), "launches"), whole(3));
  EXPECT_EQ(metric(all.value(), "wall_ns"), whole(1150));
  request.rank = "1";
  auto one = load_run(request);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(metric(one.value(), "launches"), whole(2));
  request.rank = "7";
  EXPECT_FALSE(load_run(request).ok());
}

TEST(Report, WithoutApiTheSectionsOfCallsAreAbsentAndNamed) {
  TraceBuilder trace;
  trace.thread(100);
  trace.info("option.collect", "nvtx");
  const Report report = make_report(trace.load_all(), {});
  EXPECT_EQ(report.table("api"), nullptr);
  EXPECT_NE(report.table("overview"), nullptr);
  bool named = false;
  for (const NotCollected& entry : report.coverage.not_collected) named = named || entry.what == "api";
  EXPECT_TRUE(named);
}

TEST(Report, UnknownIsNullWithAReason) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  launch(trace, main, 0xf9, 1000, 1010);  // nobody named it
  const LoadedRun loaded = trace.load_all();
  EXPECT_TRUE(is_null(metric(loaded, "gpu_busy_ratio")));
  const Table table = kernels_report(loaded);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, table.rows[0], "kernel"), text_value("(function 0xf9)"));
  for (const char* key :
       {"symbol", "registers", "static_shared_bytes", "device", "occupancy", "total_ns", "tensor_core"}) {
    EXPECT_TRUE(is_null(cell(table, table.rows[0], key))) << key;
  }
}

TEST(RunReport, NamesTheCuptiThatMeasured) {
  for (const auto& [number, name] : {std::pair<u32, Value>{0, {}},
                                     {19, text_value("12.0")},
                                     {28, text_value("12.9")},
                                     {25, text_value("API 25")},
                                     {130001, text_value("13.0")},
                                     {130200, text_value("13.2")}}) {
    TraceBuilder trace;
    trace.add_call(trace.thread(100), "cuInit", 1000, 2000);
    const u32 version = number;
    trace.add<DeviceState>(TraceBuilder::definitions(), "", 3, 3,
                           [&](auto& r) { r.state = static_cast<u32>(DeviceCollection::On), r.version = version; });
    const Table table = run_report(trace.load_all());
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(cell(table, table.rows[0], "cupti"), name) << number;
  }
}

TEST(DevicesReport, LeavesOutWhatTheDriverDidNotSay) {
  LoadedRun run;
  ProcessTrace& process = run.processes.emplace_back();
  process.devices.emplace_back().ordinal = 0;
  process.devices.emplace_back().ordinal = 1;
  process.devices[1].uuid = "b", process.devices[1].capability_major = 9;
  process.devices[1].pci_domain = 1, process.devices[1].pci_bus_device = 0x1b00;
  const Table table = devices_report(run);
  for (const Row& row : table.rows) {
    const bool second = cell(table, row, "ordinal") == Value(i64{1});
    EXPECT_EQ(cell(table, row, "capability"), second ? text_value("9.0") : Value());
    EXPECT_EQ(cell(table, row, "pci"), second ? text_value("0001:1b:00") : Value());
  }
  EXPECT_EQ(table.rows.size(), 2u);
}

TEST(Coverage, NamesTheRunsThatAreCountedTogether) {
  LoadedRun run;
  for (const char* name : {"20260101-000000-1-aa", "20260101-000000-1-aa", "20260102-000000-2-bb"})
    run.processes.emplace_back().who.run = name;
  const std::vector<std::string> remarks = coverage_of(run).remarks;
  const std::string said =
      "2 runs are counted together (20260102-000000-2-bb, 20260101-000000-1-aa): --last reports the newest alone";
  EXPECT_EQ(std::count(remarks.begin(), remarks.end(), said), 1);
  run.processes.pop_back();
  for (const std::string& remark : coverage_of(run).remarks)
    EXPECT_EQ(remark.find("together"), std::string::npos) << remark;
}

// srun gputrace run -- …: each rank under one of its own.
TEST(Coverage, RanksOfAJobThatWereAliveTogetherAreOneRun) {
  LoadedRun run;
  const auto add = [&](const char* name, const char* job, const char* rank, Nanos begin, Nanos end) {
    ProcessTrace& process = run.processes.emplace_back();
    process.who.run = name, process.who.job = job, process.who.rank = rank;
    process.begin = process.first_realtime = begin, process.end = end;
  };
  using Places = std::vector<std::size_t>;
  add("a", "77", "0", 100, 200);
  add("b", "77", "1", 110, 220);
  add("c", "77", "2", 210, 300);
  EXPECT_EQ(runs_of(run.processes), (Places{0, 0, 0}));
  for (const std::string& remark : coverage_of(run).remarks)
    EXPECT_EQ(remark.find("together"), std::string::npos) << remark;
  add("d", "77", "0", 400, 500);  // once more in the same allocation
  add("e", "77", "1", 410, 500);
  add("e", "77", "1", 420, 480);  // a child
  add("f", "78", "2", 410, 500);
  EXPECT_EQ(runs_of(run.processes), (Places{0, 0, 0, 3, 3, 3, 6}));
  add("g", "77", "1", 450, 500);  // a rank twice: which one belongs to whom nobody can tell
  EXPECT_EQ(runs_of(run.processes), (Places{0, 0, 0, 3, 4, 4, 6, 7}));
  add("", "", "", 700, 800);
  add("", "", "", 790, 900);
  add("", "", "", 900, 950);
  add("", "79", "", 0, 10);
  add("", "79", "", 20, 30);
  EXPECT_EQ(runs_of(run.processes), (Places{0, 0, 0, 3, 4, 4, 6, 7, 8, 8, 10, 11, 11}));
}

}  // namespace
}  // namespace gputrace::test
