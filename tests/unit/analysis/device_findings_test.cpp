// Findings and reports on device time: programs with a known trouble, and the same without it, numbers by hand.
#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/report.h"
#include "analysis/reports/list.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

using Script = Planted;

// A server that begins a thread for each request: what lies before the first call of each is told, and nothing to gain by doing its work
// elsewhere. The same by one thread is that thread's work.
TEST(DeviceFindings, ThreadsThatBeginForEachRequest) {
  for (const bool threads : {true, false}) {
    Script script;
    for (int i = 0; i < 40; ++i) {
      script.sleep(5000 * kUs);
      if (threads) script.begin_thread();
      for (int k = 0; k < 10; ++k) script.run(4 * kUs, 100 * kUs), script.sleep(20 * kUs);
      script.wait();
    }
    const auto findings = find_findings(script.load());
    const Finding* finding = find(findings, "idle-gaps");
    ASSERT_NE(finding, nullptr);
    if (!threads) {
      EXPECT_GT(finding->gain_ns, 100'000'000u);
      EXPECT_EQ(finding->text.find("first call"), std::string::npos);
      continue;
    }
    EXPECT_EQ(finding->gain_ns, 0u);
    EXPECT_EQ(finding->severity, Severity::Hint);
    EXPECT_EQ(evidence(*finding, "new_threads"), whole(39));  // none before the first of all
    const auto before = std::get<i64>(evidence(*finding, "before_new_threads_ns"));
    EXPECT_NEAR(static_cast<double>(before), 39.0 * 5000 * kUs, 39.0 * 50 * kUs);
  }
}

// Of native code no look tells whether a thread works or waits: what it had of processors does, and what it waited for where that is counted.
TEST(DeviceFindings, AHostThatStandsStill) {
  for (const u64 percent : {5, 40, 95}) {
    for (const bool counted : {false, true}) {
      Script script;
      for (int i = 0; i < 60; ++i) script.run(4 * kUs, 300 * kUs), script.sleep(700 * kUs);
      const u64 life = static_cast<u64>(script.now());
      script.trace().add<ThreadUse>(TraceBuilder::definitions(), "", script.now(), script.now(), [&](auto& r) {
        r.process = 0, r.tid = 100, r.parent = 0, r.name = 0, r.flags = 0, r.since = 0;
        r.cpu = life * percent / 100, r.ready = 0, r.age = life;
      });
      if (counted)
        script.trace().add<WaitUse>(TraceBuilder::definitions(), "", script.now(), script.now(), [&](auto& r) {
          r.process = 0, r.tid = 100, r.frame = 0, r.what = static_cast<u32>(WaitFor::Sleep);
          r.count = 60, r.total = life * (100 - percent) / 100, r.longest = r.total;
        });
      const LoadedRun run = script.load();
      const auto findings = find_findings(run);
      const Finding* gaps = find(findings, "idle-gaps");
      ASSERT_NE(gaps, nullptr);
      const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
      EXPECT_FALSE(has(gaps->fix, "busy all along")) << "nobody looked";
      EXPECT_EQ(has(gaps->text, "of that at least nothing that calls CUDA ran"), percent != 95) << gaps->text;
      if (percent == 95) continue;
      const double span = static_cast<double>(run.processes[0].device.devices.at(0).span_ns());
      const double host = static_cast<double>(std::get<i64>(evidence(*gaps, "cause_ns")));
      EXPECT_NEAR(static_cast<double>(std::get<i64>(evidence(*gaps, "stood_still_ns"))),
                  host - span * static_cast<double>(percent) / 100, 0.01 * span);
      EXPECT_EQ(has(gaps->fix, "+waits"), !counted) << gaps->fix;
      EXPECT_EQ(has(gaps->fix, "instead of for some time"), counted) << gaps->fix;
      EXPECT_EQ(has(gaps->text, "(what those threads wait for longest is sleep: "), counted) << gaps->text;
    }
  }
}

// A host that is slow because others have its processors is told so, and for no more than that; one that has them is not.
TEST(DeviceFindings, AHostThatWaitsForAProcessor) {
  for (const u64 percent : {0, 22, 90}) {
    Script script;
    for (int i = 0; i < 60; ++i) script.run(4 * kUs, 300 * kUs), script.sleep(700 * kUs);
    const u64 life = static_cast<u64>(script.now());
    script.trace().add<ThreadUse>(TraceBuilder::definitions(), "", script.now(), script.now(), [&](auto& r) {
      r.process = 0, r.tid = 100, r.parent = 0, r.name = 0, r.flags = 0, r.since = 0;
      r.cpu = life / 20, r.ready = life * percent / 100, r.age = life;
    });
    const LoadedRun run = script.load();
    const auto findings = find_findings(run);
    const Finding* finding = find(findings, "busy-processors");
    const Finding* gaps = find(findings, "idle-gaps");
    ASSERT_NE(gaps, nullptr);
    if (percent == 0) {
      EXPECT_EQ(finding, nullptr);
      EXPECT_EQ(gaps->severity, Severity::Problem);
      continue;
    }
    ASSERT_NE(finding, nullptr);
    const double span = static_cast<double>(run.processes[0].device.devices.at(0).span_ns());
    const double most = static_cast<double>(gaps->gain_ns);  // all of the host's work
    const double wanted = std::min(most, span * static_cast<double>(percent) / 100);
    EXPECT_NEAR(static_cast<double>(finding->gain_ns), wanted, 0.01 * wanted) << percent;
    EXPECT_EQ(finding->severity, Severity::Problem);
    // Where it is less than half of what the host's work costs, that work comes first.
    EXPECT_EQ(gaps->severity, percent == 90 ? Severity::Hint : Severity::Problem) << percent;
  }
}

// A second of start-up in which others had the processor for 0.8 s is none of the loop's, of which it missed a tenth: looked at when the
// first call was made, in the middle and at the end.
TEST(DeviceFindings, WaitingForAProcessorBeforeTheLoopIsNoneOfIt) {
  Script script;
  const Nanos startup = 1'000 * kMs, begin = script.now();
  const auto look = [&](double share) {
    const Nanos in_loop = script.now() - begin;
    script.trace().add<ThreadUse>(TraceBuilder::definitions(), "", script.now(), script.now(), [&](auto& r) {
      r.process = 0, r.tid = 100, r.parent = 0, r.name = 0, r.flags = 0, r.since = 0;
      r.ready = static_cast<u64>(0.8 * static_cast<double>(startup) + share * static_cast<double>(in_loop));
      r.age = static_cast<u64>(startup + in_loop), r.cpu = r.age / 20;
    });
  };
  look(0);
  for (int i = 0; i < 60; ++i) {
    script.run(4 * kUs, 300 * kUs), script.sleep(700 * kUs);
    if (i == 30) look(0.1);
  }
  look(0.1);
  const LoadedRun run = script.load();
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "busy-processors");
  ASSERT_NE(finding, nullptr);
  const double span = static_cast<double>(run.processes[0].device.devices.at(0).span_ns());
  EXPECT_NEAR(static_cast<double>(finding->gain_ns), 0.1 * span, 0.005 * span);
  EXPECT_NEAR(std::get<double>(evidence(*finding, "share")), 0.1, 0.001);
}

// Eight devices that each wait 2 % of their time are not one that waits 16 %.
TEST(DeviceFindings, SharesOfDevicesAreNotSummed) {
  Script script;
  for (int i = 0; i < 200; ++i) script.run(50 * kUs, 10 * kUs);
  LoadedRun run = script.load();
  DeviceTimes& first = run.processes[0].device.devices.at(0);
  IdleSum& launch = first.causes[static_cast<unsigned>(IdleCause::Launch)];
  first.busy_ns = first.span_ns() * 90 / 100;
  launch.total_ns = first.span_ns() / 50;
  for (i32 device = 1; device < 8; ++device) {
    DeviceTimes more = run.processes[0].device.devices[0];
    more.device = device;
    run.processes[0].device.devices.push_back(more);
  }
  EXPECT_EQ(find(find_findings(run), "launch-bound"), nullptr);
  DeviceTimes& one = run.processes[0].device.devices[5];
  one.causes[static_cast<unsigned>(IdleCause::Launch)].total_ns = one.span_ns() / 10;
  const auto findings = find_findings(run);
  const Finding* found = find(findings, "launch-bound");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(evidence(*found, "device"), whole(5));
  EXPECT_EQ(evidence(*found, "idle_ns"), number(one.span_ns() / 10));
}

TEST(DeviceFindings, NeedlessSynchronizationWithWhatTheDeviceWaited) {
  Script loop, rare;
  for (int i = 0; i < 21; ++i) {
    loop.run(4 * kUs, 100 * kUs);
    loop.wait();
    rare.run(4 * kUs, 100 * kUs);
  }
  rare.wait();
  const LoadedRun loaded = loop.load();
  const auto findings = find_findings(loaded);
  const Finding* finding = find(findings, "needless-synchronization");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "waits"), whole(21));
  EXPECT_EQ(evidence(*finding, "needless"), whole(20));
  EXPECT_EQ(evidence(*finding, "gpu_idle_ns"), whole(20 * 2 * kUs));  // to return
  EXPECT_EQ(finding->gain_ns, 20u * 7 * kUs);                         // ... and 5 us to start
  EXPECT_EQ(finding->severity, Severity::Warning);
  const Table sync = sync_report(loaded);
  ASSERT_EQ(sync.rows.size(), 1u);
  EXPECT_EQ(cell(sync, sync.rows[0], "gpu_idle_ns"), whole(20 * 2 * kUs));
  EXPECT_EQ(cell(sync, sync.rows[0], "gaps"), whole(20));
  EXPECT_EQ(find(find_findings(rare.load()), "needless-synchronization"), nullptr);
}

TEST(DeviceFindings, TensorsThatAreMovedToAnotherLayout) {
  Script slow, few;
  for (int i = 0; i < 60; ++i) slow.run(5 * kUs, 60 * kUs, 2), slow.run(5 * kUs, 240 * kUs, 1);
  for (int i = 0; i < 60; ++i) {
    if (i < 15) few.run(5 * kUs, 50 * kUs, 2);  // no habit
    few.run(5 * kUs, 200 * kUs, 1);
  }
  const auto findings = find_findings(slow.load());
  const Finding* finding = find(findings, "layout-conversions");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::Warning);                         // a little less than a fifth:
  EXPECT_EQ(finding->gain_ns, static_cast<u64>(60 * 60 * kUs - 5 * kUs));  // the first product waits for its own call
  EXPECT_EQ(evidence(*finding, "executions"), whole(60));
  EXPECT_EQ(evidence(*finding, "total_ns"), number(60 * 60 * kUs));
  EXPECT_EQ(evidence(*finding, "share"), Value(0.2));
  EXPECT_NE(finding->text.find("(20 % of kernel time), most of it cudnn::ops::nchwToNhwcKernel"), std::string::npos)
      << finding->text;
  EXPECT_EQ(find(find_findings(few.load()), "layout-conversions"), nullptr);
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
}

TEST(DeviceFindings, GapsOfTheProfilerAreNotTheProgramsButAreNamed) {
  Script script;
  for (int i = 0; i < 3; ++i) {
    script.run(4 * kUs, 1000 * kUs);
    script.held(2 * kMs);
  }
  script.run(4 * kUs, 1000 * kUs);
  EXPECT_EQ(find(find_findings(script.load()), "idle-gaps"), nullptr);
  script.sleep(3 * kMs);
  script.run(4 * kUs, 10 * kUs);
  const auto findings = find_findings(script.load());
  const Finding* finding = find(findings, "idle-gaps");
  ASSERT_NE(finding, nullptr);
  const Nanos profiler = 3 * (2 * kMs + 4 * kUs - 1005 * kUs);
  EXPECT_EQ(evidence(*finding, "left_out_profiler_ns"), whole(profiler));
  EXPECT_EQ(evidence(*finding, "cause"), text_value("host"));
  EXPECT_EQ(evidence(*finding, "cause_ns"), whole(3 * kMs + 4 * kUs - 1005 * kUs));
}

TEST(DeviceFindings, TheLargestCauseOfIdleTimeAtAnyLengthOfGaps) {
  for (const Nanos gap : {3 * kMs, 900 * kUs, 150 * kUs}) {
    Script script;
    for (int i = 0; i < 50; ++i) {
      script.run(4 * kUs, 10 * kUs);
      script.sleep(gap);
    }
    const auto findings = find_findings(script.load());
    const Finding* finding = find(findings, "idle-gaps");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(evidence(*finding, "gaps"), whole(49));
    EXPECT_EQ(evidence(*finding, "cause"), text_value("host"));
    EXPECT_EQ(evidence(*finding, "cause_ns"), whole(49 * (gap + 4 * kUs - 15 * kUs)));
    EXPECT_EQ(evidence(*finding, "idle_ns"), whole(49 * (gap + 4 * kUs - 10 * kUs)));
    EXPECT_EQ(finding->severity, Severity::Problem);
  }
}

TEST(DeviceFindings, OfOneSeverityTheLargestGainComesFirst) {
  Script script;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 6; ++k) script.run(10 * kUs, 15 * kUs, k % 2);
    script.allocate(60 * kUs);
    script.wait();
    script.sleep(200 * kUs);
  }
  const auto findings = find_findings(script.load());
  ASSERT_GE(findings.size(), 2u);
  for (std::size_t i = 1; i < findings.size(); ++i) {
    if (findings[i].severity == findings[i - 1].severity) {
      EXPECT_LE(findings[i].gain_ns, findings[i - 1].gain_ns);
    }
    EXPECT_LE(findings[i].severity, findings[i - 1].severity);
  }
  EXPECT_EQ(findings[0].id, "idle-gaps");
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
