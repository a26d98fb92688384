// What findings say of a loop whose steps are known: that waits for its input, whose host works all along, and what is told of the loop
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "analysis/findings/findings.h"
#include "analysis/load.h"
#include "analysis/steps/find_steps.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/steps/framework_loop.h"

namespace gputrace {
namespace {

using namespace test;

// What start-up costs is not divided among the steps.
TEST(MarkedSteps, AFindingOfTheWholeRunHasNoGainPerStep) {
  Loop loop;
  loop.forward();
  loop.wait();
  loop.sleep(50 * kMs);
  for (int i = 0; i < 20; ++i) loop.batch(10 * kUs), loop.forward(), loop.update(), loop.wait();
  LoadedRun run = loop.load();
  ASSERT_NE(run.processes[0].loop, nullptr);
  run.processes[0].loop = nullptr;
  const auto findings = find_findings(run);
  const Finding* const idle = find(findings, "idle-gaps");
  ASSERT_NE(idle, nullptr);
  EXPECT_GT(idle->gain_ns, 40u * kMs);
  EXPECT_FALSE(idle->gain_ns_per_step);
}

// A loop that costs more than a file of its size may is not there at all: half of it would tell wrong gains.
TEST(MarkedSteps, ALoopThatCostsTooMuchIsLeftOutAndSaid) {
  ::unsetenv("GPUTRACE_READ_LIMITS");  // a build with sanitizers reads without them
  for (const u64 functions : {100u, 20'000u}) {
    Loop loop;
    loop.forward();
    loop.wait();
    loop.sleep(50 * kMs);
    for (int i = 0; i < 20; ++i) {
      loop.batch(10 * kUs);
      if (i == 10) {
        for (u64 k = 0; k < functions; ++k) {
          loop.trace().add<FunctionGet>(TraceBuilder::definitions(), "", loop.now(), loop.now(),
                                        [&](auto& r) { r.function = 0x1000 + k, r.module = 0xa0; });
        }
      }
      loop.forward();
      loop.update();
      loop.wait();
    }
    loop.load();
    TemporaryDirectory directory;
    loop.trace().write(directory.file("t.gtrace"));
    auto opened = TraceReader::open(directory.file("t.gtrace"));
    ASSERT_TRUE(opened.ok());
    Allowance ample(u64{1} << 30);
    const ProcessTrace process = load_process(opened.value(), {}, {}, nullptr, &ample);
    ASSERT_FALSE(ample.spent());
    EXPECT_EQ(process.loop == nullptr, functions > 8192);
    const bool said = std::any_of(process.notes.begin(), process.notes.end(), [](const std::string& note) {
      return note.rfind("findings are of the whole run, start-up included", 0) == 0;
    });
    EXPECT_EQ(said, process.loop == nullptr);
  }
}

// Of a long run the first steps stand for the loop: start-up is no more in them than where all are read again.
TEST(MarkedSteps, OfALongRunTheFirstStepsAreReadAgain) {
  Loop loop;
  loop.forward();
  loop.wait();
  loop.sleep(500 * kMs);
  for (int i = 0; i < 3000; ++i) loop.batch(10 * kUs), loop.forward(), loop.update(), loop.wait();
  loop.load();
  TemporaryDirectory directory;
  loop.trace().write(directory.file("t.gtrace"));
  auto opened = TraceReader::open(directory.file("t.gtrace"));
  ASSERT_TRUE(opened.ok());
  const auto load = [&](u64 read_twice) {
    Allowance ample(u64{1} << 30);
    return load_process(opened.value(), {}, {}, nullptr, &ample, read_twice);
  };
  const ProcessTrace whole = load(kMostReadTwice), part = load(8000), none = load(200);
  ASSERT_NE(whole.loop, nullptr);
  ASSERT_NE(part.loop, nullptr);
  EXPECT_EQ(none.loop, nullptr);
  const StepStatistics all = statistics_of(whole.loop->steps), first = statistics_of(part.loop->steps);
  EXPECT_GT(first.counted, 100u);
  EXPECT_LT(first.counted, all.counted);
  EXPECT_EQ(part.loop->begin, whole.loop->begin);
  const auto idle_of = [](const ProcessTrace& process, u64 steps) {
    const DeviceTimes& device = process.loop->device.devices.front();
    return static_cast<double>(device.last - device.first - static_cast<Nanos>(device.busy_ns)) /
           static_cast<double>(steps);
  };
  EXPECT_NEAR(idle_of(part, first.counted) / idle_of(whole, all.counted), 1, 0.01);
  const auto noted = [](const ProcessTrace& process, const char* with) {
    return std::any_of(process.notes.begin(), process.notes.end(),
                       [with](const std::string& note) { return note.find(with) != std::string::npos; });
  };
  EXPECT_FALSE(noted(whole, "read twice"));
  EXPECT_TRUE(noted(part, "of its 3,000 steps: more than 8,000 records are not read twice"));
  EXPECT_TRUE(noted(none, "of the whole run, start-up included, not of the loop alone: more than 200 records"));
}

TEST(Findings, InputBound) {
  for (const Nanos loads : {300 * kUs, 5 * kUs}) {
    Loop loop;
    for (int i = 0; i < 20; ++i) {
      loop.batch(loads);
      loop.forward();
      loop.update();
      loop.wait();
    }
    const auto findings = find_findings(loop.load());
    const Finding* const finding = find(findings, "input-bound");
    ASSERT_EQ(finding != nullptr, loads == 300 * kUs) << loads;
    if (!finding) continue;
    EXPECT_EQ(findings.front().id, "input-bound");
    EXPECT_EQ(finding->severity, Severity::Problem);
    // Of the first step's wait nothing is known but that no device had begun yet.
    EXPECT_NEAR(static_cast<double>(finding->gain_ns), 20.0 * 300 * kUs, 310.0 * kUs);
    ASSERT_TRUE(finding->gain_ns_per_step.has_value());
    EXPECT_NEAR(static_cast<double>(*finding->gain_ns_per_step), 300.0 * kUs, 20.0 * kUs);
  }
}

// Of 6 ms that the loop waits for batches: what it reads itself, and what its worker, which has all of that time, does.
TEST(Findings, InputBoundByReading) {
  for (const bool in_worker : {false, true}) {
    constexpr u32 kSampled = 1u << 31;
    Loop loop;
    for (int i = 0; i < 20; ++i) loop.batch(300 * kUs), loop.forward(), loop.update(), loop.wait();
    DeviceBuilder& trace = loop.trace();
    const auto frame = [&](u32 id, u32 parent, const char* function, const char* file) {
      const u64 name = trace.text(function), path = trace.text(file);
      trace.add<StackFrame>(TraceBuilder::definitions(), "", 2, 2, [&](auto& r) {
        r.function = name, r.file = path, r.id = id, r.parent = parent, r.line = 30, r.first_line = 1;
        r.language = static_cast<u32>(SourceLanguage::Python);
      });
    };
    frame(1001, 0, "_SingleProcessDataLoaderIter._next_data", "/x/site-packages/torch/utils/data/dataloader.py");
    frame(1002, 1001, "Data.__getitem__", "data.py");
    frame(kSampled, 0, "_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py");
    frame(kSampled + 1, kSampled, "Data.__getitem__", "data.py");
    const auto file = [&](const char* path, u32 line, i32 process, u64 total, u64 bytes) {
      const u64 name = trace.text(path);
      trace.add<FileUse>(TraceBuilder::definitions(), "", 900, 900, [&](auto& r) {
        r.path = name, r.what = static_cast<u32>(FileCall::Pread), r.frame = line, r.process = process;
        r.count = 20, r.bytes = bytes, r.total = total, r.longest = total;
      });
    };
    file("/data/set", in_worker ? 0 : 1002, in_worker ? 4711 : 0, 4 * kMs, 5'000'000);
    file("/data/weights", 0, 0, 400 * kMs, 7'000'000);
    trace.add<WaitUse>(TraceBuilder::definitions(), "", 900, 900, [&](auto& r) {
      r.tid = 100, r.what = static_cast<u32>(WaitFor::InterpreterLock), r.frame = 0, r.process = 0;
      r.count = 20, r.total = r.longest = 2 * kMs;
    });
    if (in_worker) {
      trace.add<Sample>(TraceBuilder::definitions(), "", 5 * kMs, 5 * kMs, [&](auto& r) {
        r.frame = kSampled + 1, r.frames = 2, r.slot = 0, r.incarnation = 1, r.process = 4711;
      });
    }
    const auto findings = find_findings(loop.load());
    const Finding* const finding = find(findings, "input-bound");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(evidence(*finding, "io_ns"), number(u64{4 * kMs}));
    EXPECT_EQ(evidence(*finding, "io_bytes"), number(u64{5'000'000}));
    EXPECT_EQ(evidence(*finding, "io_path"), Value(std::string("/data/set")));
    // Where workers load the loop's own thread waits for them.
    EXPECT_EQ(finding->text.find("waited 2.000 ms of the run for Python's lock") != std::string::npos, !in_worker)
        << finding->text;
    EXPECT_EQ(evidence(*finding, "io_call"), Value(std::string("pread")));
    EXPECT_NE(
        finding->text.find(in_worker ? "file calls of its workers took 4.0" : "file calls within the loader took 4.0"),
        std::string::npos)
        << finding->text;
  }
}

// The host's own work of 40 steps: `pieces` times so long from launch to launch, and once `at_once`; from which a loader's part may be known.
Finding idle_finding(int pieces, Nanos each, std::optional<Nanos> batch, Nanos at_once = 0) {
  Loop loop;
  for (int i = 0; i < 40; ++i) {
    if (batch) loop.batch(*batch);
    for (int piece = 0; piece < pieces; ++piece) loop.forward(), loop.wait(), loop.sleep(each);
    loop.update(at_once);
    loop.wait();
  }
  const LoadedRun run = loop.load();
  const std::vector<Finding> found = find_findings(run);
  const Finding* const idle = find(found, "idle-gaps");
  EXPECT_NE(idle, nullptr);
  return idle ? *idle : Finding{};
}

TEST(IdleGaps, AdviseByWhereTheHostsWorkLies) {
  const auto says = [](const Finding& finding, const char* words) {
    return finding.fix.find(words) != std::string::npos;
  };
  const Finding spread = idle_finding(20, 400 * kUs, 20 * kUs);
  EXPECT_TRUE(says(spread, "larger batches")) << spread.fix;
  EXPECT_GT(std::get<i64>(evidence(spread, "short_gaps_ns")), 40 * 20 * 390 * kUs);
  EXPECT_LT(std::get<i64>(evidence(spread, "short_gaps_ns")), 40 * 20 * 430 * kUs);
  const Finding at_once = idle_finding(1, 8 * kMs, 20 * kUs);
  EXPECT_TRUE(says(at_once, "beside the device's")) << at_once.fix;
  // 4 ms for the batch and 4 at once, of 14.8: what the loader takes is another finding's.
  const Finding beside_loader = idle_finding(17, 400 * kUs, 4 * kMs, 4 * kMs);
  EXPECT_TRUE(says(beside_loader, "larger batches")) << beside_loader.fix;
  const Finding no_loader = idle_finding(1, 8 * kMs, {});
  EXPECT_TRUE(says(no_loader, "comes next")) << no_loader.fix << ": nobody knows what of it was loading";
}

}  // namespace
}  // namespace gputrace
