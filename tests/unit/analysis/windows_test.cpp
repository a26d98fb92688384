// Parts of a run: windows of the report and of the recording, single devices. Whatever the cuts, the parts add up to the
// whole.
#include <algorithm>
#include <random>

#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "analysis/run/one_device.h"
#include "analysis/run/quality.h"
#include "tests/unit/device_builder.h"

namespace gputrace::test {
namespace {

using Thread = TraceBuilder::Thread;

Value metric_of(const Table& overview, const char* name) {
  return cell(overview, row_with(overview, "metric", text_value(name)), "value");
}
i64 counted(const Table& overview, const char* name) {
  const Value value = metric_of(overview, name);
  return is_null(value) ? 0 : std::get<i64>(value);
}

LoadedRun run_of(ProcessTrace process) {
  LoadedRun run;
  run.wall_begin = process.begin, run.wall_end = process.end;
  run.processes.push_back(std::move(process));
  return run;
}

void launch_on(TraceBuilder& trace, Thread thread, u64 context, Nanos begin) {
  trace.add<KernelLaunch>(thread, "cuLaunchKernel", begin, begin + 100, [&](auto& r) {
    r.function = 0xf1, r.context = context, r.stream = 0;
    r.grid_x = 8, r.grid_y = r.grid_z = 1, r.block_x = 256, r.block_y = r.block_z = 1;
  });
}
void copy_on(TraceBuilder& trace, Thread thread, u64 context, Nanos begin, u64 bytes) {
  trace.add<Copy>(thread, "cuMemcpyHtoDAsync_v2", begin, begin + 100, [&](auto& r) {
    r.kind = static_cast<u8>(CopyKind::HtoD), r.bytes = bytes, r.asynchronous = 1, r.context = context;
    r.source_memory = static_cast<u8>(MemoryKind::Pinned);
  });
}
void ran_on(DeviceBuilder& trace, u32 device, u32 correlation, u64 name, Nanos start, Nanos end, Nanos handled) {
  trace.add<DeviceKernel>(trace.collector(), "", handled, handled, [&](auto& r) {
    r.start = trace.on_device(start), r.finish = trace.on_device(end), r.name = name, r.correlation = correlation;
    r.context = 1 + device, r.stream = 7 + device, r.device = device, r.grid_x = 8, r.grid_y = r.grid_z = 1;
    r.block_x = 256, r.block_y = r.block_z = 1;
  });
}

// Launches and copies of two devices; of some nothing is reported. 0.3 of them are queued for long.
struct Mixed {
  DeviceBuilder trace;
  Nanos last = 0;

  explicit Mixed(u64 seed) {
    std::mt19937_64 random(seed);
    const Thread main = trace.thread(100);
    trace.device(1, 80ull << 30, 0xc1);
    trace.name_function(0xf1, "step", 0xa0);
    const u64 step = trace.text("step");
    trace.reading(500);
    Nanos now = 1000, free[2] = {};
    std::vector<std::function<void(Nanos)>> later;
    for (u32 i = 0; i < 200; ++i) {
      const u32 device = static_cast<u32>(random() % 2), correlation = 10 + i;
      const bool kernel = random() % 3 != 0, told = random() % 10 != 0;
      if (kernel)
        launch_on(trace, main, 0xc0 + device, now);
      else
        copy_on(trace, main, 0xc0 + device, now, 100 + random() % 1000);
      const Nanos called = now;
      const Nanos start = std::max(free[device], now + 300), end = start + 50 + static_cast<Nanos>(random() % 2000);
      free[device] = end;
      if (kernel && told) {
        later.push_back([=, this](Nanos handled) {
          trace.key(100, correlation, called + 10, called + 90, handled);
          ran_on(trace, device, correlation, step, start, end, handled);
        });
      }
      last = std::max({last, end, now});
      now += 150 + static_cast<Nanos>(random() % 900);
    }
    for (const auto& each : later) each(last + 1000);
    trace.reading(last + 2000);
  }
};

constexpr const char* kCounts[] = {"kernels", "launches", "copies", "copy_bytes"};

TEST(Windows, PartsOfARunAddUpToTheWhole) {
  for (u64 seed = 1; seed <= 20; ++seed) {
    Mixed mixed(seed);
    std::mt19937_64 random(seed * 7);
    std::vector<Nanos> cuts{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()};
    for (int i = 0; i < 4; ++i) cuts.push_back(static_cast<Nanos>(random() % static_cast<u64>(mixed.last)));
    std::sort(cuts.begin(), cuts.end());
    const Table whole = overview_report(run_of(mixed.trace.load()));
    std::map<std::string, i64> sums;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const LoadedRun part = run_of(mixed.trace.load({cuts[i], cuts[i + 1]}));
      const Table overview = overview_report(part), kernels = kernels_report(part);
      for (const char* name : kCounts) sums[name] += counted(overview, name);
      i64 executions = 0;
      for (const Row& row : kernels.rows) executions += std::get<i64>(cell(kernels, row, "launches"));
      EXPECT_EQ(executions, counted(overview, "kernels"));
    }
    for (const char* name : kCounts) EXPECT_EQ(sums[name], counted(whole, name)) << name << " seed " << seed;
    EXPECT_GT(sums["kernels"], 0);
  }
}

// 300 queued kernels cut in the middle: each is in the part in which it started.
TEST(Windows, AKernelBelongsToTheWindowInWhichItStarted) {
  DeviceBuilder trace;
  const Thread main = trace.thread(100);
  trace.name_function(0xf1, "step", 0xa0);
  const u64 step = trace.text("step");
  trace.reading(500);
  for (u32 i = 0; i < 300; ++i) {
    trace.launch(main, 0xf1, 1000 + i * 10, 1005 + i * 10);
    trace.key(100, 10 + i, 1001 + i * 10, 1004 + i * 10, 4'000'000);
    trace.kernel(10 + i, step, 10'000 + i * 10'000, 20'000 + i * 10'000, 4'000'000);
  }
  trace.reading(4'100'000);
  constexpr Nanos kCut = 1'010'000;
  const auto kernels = [](ProcessTrace process) {
    return counted(overview_report(run_of(std::move(process))), "kernels");
  };
  EXPECT_EQ(kernels(trace.load({std::numeric_limits<Nanos>::min(), kCut})), 100);
  EXPECT_EQ(kernels(trace.load({kCut, std::numeric_limits<Nanos>::max()})), 200);
}

TEST(OneDevice, PartsOfARunAddUpToTheWhole) {
  for (u64 seed = 1; seed <= 10; ++seed) {
    Mixed mixed(seed);
    const LoadedRun run = run_of(mixed.trace.load());
    const Table whole = overview_report(run);
    std::map<std::string, i64> sums;
    for (const i64 device : {0, 1}) {
      const LoadedRun part = of_one_device(run, device);
      const Table overview = overview_report(part);
      for (const char* name : kCounts) sums[name] += counted(overview, name);
      for (const char* name : {"device_span_ns", "compute_ns", "idle_ns", "kernel_ns"})
        sums[name] += counted(overview, name);
      EXPECT_EQ(counted(overview, "devices"), 1);
    }
    for (const auto& [name, sum] : sums) EXPECT_EQ(sum, counted(whole, name.c_str())) << name << " seed " << seed;
  }
}

TEST(OneDevice, TheReportSaysWhatIsOfAllDevices) {
  Mixed mixed(3);
  ReportRequest request;
  request.device = 1;
  const Report report = make_report(run_of(mixed.trace.load()), request);
  const auto& remarks = report.coverage.remarks;
  const auto said = std::find_if(remarks.begin(), remarks.end(), [](const std::string& remark) {
    return remark.compare(0, 17, "of device 1 alone") == 0 && remark.find(" api") != std::string::npos;
  });
  EXPECT_NE(said, remarks.end());
  for (const Table& table : report.tables) {
    const int device = table.column("device");
    for (const Row& row : table.rows) {
      EXPECT_TRUE(device < 0 || table.section == "devices" || row[static_cast<std::size_t>(device)] == whole(1))
          << table.section;
    }
  }
}

// Four processes, two of which have the same rank and one none: every one is in one part, whatever window is asked for beside.
TEST(OneRank, PartsOfARunAddUpToTheWhole) {
  TemporaryDirectory directory;
  LoadRequest all;
  constexpr const char* kRanks[] = {"0", "1", "1", ""};
  Nanos last = 0;
  for (i32 i = 0; i < 4; ++i) {
    Mixed mixed(40 + static_cast<u64>(i));
    mixed.trace.identity(500 + i, 77 + static_cast<u64>(i));
    if (*kRanks[i]) mixed.trace.info("rank", kRanks[i]);
    all.files.push_back(directory.file(std::to_string(i) + ".gtrace"));
    mixed.trace.write(all.files.back());
    last = std::max(last, mixed.last);
  }
  std::mt19937_64 random(5);
  for (int cut = 0; cut < 6; ++cut) {
    if (cut) all.from = static_cast<Nanos>(random() % static_cast<u64>(last));
    if (cut % 2)
      all.to = *all.from + static_cast<Nanos>(random() % static_cast<u64>(last));
    else
      all.to.reset();
    const auto whole = load_run(all);
    ASSERT_TRUE(whole.ok());
    std::map<std::string, i64> sums;
    for (const char* rank : {"0", "1", ""}) {
      LoadRequest request = all;
      request.rank = rank;
      const auto part = load_run(request);
      ASSERT_TRUE(part.ok());
      EXPECT_EQ(part.value().processes.size(), *rank == '1' ? 2u : 1u);
      for (const char* name : kCounts) sums[name] += counted(overview_report(part.value()), name);
    }
    for (const char* name : kCounts) EXPECT_EQ(sums[name], counted(overview_report(whole.value()), name)) << name;
    EXPECT_GT(sums["launches"], 0);
  }
  all.rank = "7";
  EXPECT_FALSE(load_run(all).ok());
}

TEST(RecordedWindow, TimesAreThoseOfTheWindowAndTheReportSaysSo) {
  TraceBuilder trace;
  const Thread main = trace.thread(100);
  trace.info("option.delay_ns", "50000000");
  trace.info("option.duration_ns", "0");
  trace.info("option.capture", "all");
  trace.add<FunctionGet>(TraceBuilder::definitions(), "cuModuleGetFunction", 1000, 2000,
                         [](auto& r) { r.function = 0xf1; });
  launch_on(trace, main, 0xc0, 60'000'000);
  launch_on(trace, main, 0xc0, 90'000'000);
  const LoadedRun run = trace.load_all();
  EXPECT_EQ(counted(overview_report(run), "wall_ns"), 30'000'100);
  const Coverage coverage = coverage_of(run);
  const auto said = std::find_if(coverage.remarks.begin(), coverage.remarks.end(), [](const std::string& remark) {
    return remark.compare(0, 33, "a window was recorded (delay 50.0") == 0 &&
           remark.find("nothing") == std::string::npos;
  });
  EXPECT_NE(said, coverage.remarks.end());
}

TEST(RecordedWindow, ThatNothingFellIntoItIsSaid) {
  TraceBuilder empty, idle;
  for (TraceBuilder* trace : {&empty, &idle}) trace->info("option.capture", "nvtx:step");
  empty.thread(100);
  const Thread main = idle.thread(100);
  idle.add_call(main, "cuCtxGetCurrent", 1000, 1010);
  const auto remark = [](const TraceBuilder& trace) {
    const Coverage coverage = coverage_of(trace.load_all());
    for (const std::string& each : coverage.remarks) {
      if (each.compare(0, 21, "a window was recorded") == 0) return each.substr(each.find("; ") + 2);
    }
    return std::string();
  };
  EXPECT_EQ(remark(empty), "nothing fell into it: no such range began, or no call was made in one");
  EXPECT_EQ(remark(idle), "nothing was launched in it");
}

}  // namespace
}  // namespace gputrace::test
