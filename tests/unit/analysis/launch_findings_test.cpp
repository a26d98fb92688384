// Findings on launches: devices that wait for them, graphs that would take them, and what only looks like it; numbers by hand.
#include "analysis/findings/findings.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/planted.h"

namespace gputrace::test {
namespace {

using Script = Planted;

TEST(LaunchFindings, LaunchBoundAndShortKernels) {
  Script slow, fast;
  for (int i = 0; i < 200; ++i) {
    slow.run(50 * kUs, 10 * kUs);  // idle 40 us of every 50
    fast.run(5 * kUs, 100 * kUs);
  }
  const auto findings = find_findings(slow.load());
  const Finding* bound = find(findings, "launch-bound");
  ASSERT_NE(bound, nullptr);
  EXPECT_EQ(bound->severity, Severity::Problem);  // 80 % of the device's time
  // Ten graphs of 20 kernels: launched one after the other each takes its own 200 us and 19 times 1.5 us.
  const Nanos rest = 10 * (20 * 10 * kUs + 19 * 1500) + 5 * kUs;
  const u64 gain = static_cast<u64>(slow.span() - rest);
  EXPECT_NEAR(static_cast<double>(bound->gain_ns), static_cast<double>(gain), 0.01 * static_cast<double>(gain));
  EXPECT_EQ(evidence(*bound, "gaps"), whole(199));
  EXPECT_EQ(evidence(*bound, "gain_ns"), number(bound->gain_ns));
  const Finding* brief = find(findings, "short-kernels");
  ASSERT_NE(brief, nullptr);
  EXPECT_EQ(evidence(*brief, "short"), whole(200));
  EXPECT_EQ(evidence(*brief, "excess_ns"), whole(200 * 40 * kUs));
  EXPECT_EQ(evidence(*brief, "kernel_mean_ns"), whole(10 * kUs));
  EXPECT_EQ(evidence(*brief, "launch_mean_ns"), whole(50 * kUs));
  EXPECT_EQ(brief->gain_ns, bound->gain_ns);
  const auto none = find_findings(fast.load());
  EXPECT_EQ(find(none, "launch-bound"), nullptr);
  EXPECT_EQ(find(none, "short-kernels"), nullptr);
}

// What a collective takes to launch is the library's to prepare: no compiler fuses it with others.
TEST(LaunchFindings, NoCollectiveIsAShortKernel) {
  Script script;
  for (int i = 0; i < 200; ++i) {
    script.run(50 * kUs, 10 * kUs, 3);
    if (i < 110) script.run(20 * kUs, 10 * kUs);
  }
  const auto findings = find_findings(script.load());
  const Finding* const brief = find(findings, "short-kernels");
  ASSERT_NE(brief, nullptr);
  EXPECT_EQ(evidence(*brief, "short"), whole(110));
  EXPECT_EQ(evidence(*brief, "launches"), whole(110));
  EXPECT_EQ(evidence(*brief, "excess_ns"), whole(110 * 10 * kUs));
}

// A pause within a sequence is no gap between launches that is counted, and a graph takes it as well.
TEST(LaunchFindings, GraphsTakeMoreThanTheGapsThatAreCounted) {
  Script pausing, steady;
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 20; ++k) {
      pausing.sleep((k % 4 == 3 ? 220 : 45) * kUs), pausing.run(6 * kUs, 5 * kUs);
      steady.sleep(45 * kUs), steady.run(6 * kUs, 5 * kUs);
    }
    pausing.fetch(), steady.fetch();
  }
  const auto more = find_findings(pausing.load()), same = find_findings(steady.load());
  const Finding *with = find(more, "launch-bound"), *without = find(same, "launch-bound");
  ASSERT_NE(with, nullptr);
  ASSERT_NE(without, nullptr);
  EXPECT_NE(with->text.find("longer pauses between launches of one sequence"), std::string::npos) << with->text;
  EXPECT_EQ(without->text.find("longer pauses"), std::string::npos) << without->text;
}

// What the host does between launches that one graph takes is promised there; where nothing is promised, the device's idle time stands as it is.
TEST(LaunchFindings, IdleTimeThatGraphsTakeIsNoProblemOfItsOwn) {
  Script pausing;
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 20; ++k) pausing.sleep((k % 4 == 3 ? 220 : 45) * kUs), pausing.run(10 * kUs, 5 * kUs);
    pausing.fetch();
  }
  LoadedRun run = pausing.load();
  const auto promised = find_findings(run);
  run.processes.at(0).gains = {};
  run.processes.at(0).gains.why_not = "not replayed";
  const auto unknown = find_findings(run);
  const Finding *gaps = find(promised, "idle-gaps"), *alone = find(unknown, "idle-gaps");
  ASSERT_NE(gaps, nullptr);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(gaps->severity, Severity::Hint);
  EXPECT_EQ(gaps->gain_ns, 0u);
  EXPECT_GT(find(promised, "launch-bound")->gain_ns, 0u);
  EXPECT_EQ(alone->severity, Severity::Problem);
}

// What is asked behind the batch that a loop waits for, before it is copied, belongs to no graph, nor does the wait before it.
TEST(LaunchFindings, NoGraphTakesTheWaitForABatch) {
  Script plain, asks;
  for (int i = 0; i < 30; ++i) {
    for (Script* each : {&plain, &asks}) {
      each->sleep(10 * kMs);
      if (each == &asks) each->look_up(kUs);
      each->copy_to_device(4096, MemoryKind::Pinned, true);
      for (int k = 0; k < 20; ++k) each->sleep(45 * kUs), each->run(6 * kUs, 5 * kUs);
    }
  }
  const auto of_plain = find_findings(plain.load()), of_asks = find_findings(asks.load());
  const Finding *without = find(of_plain, "launch-bound"), *with = find(of_asks, "launch-bound");
  ASSERT_NE(without, nullptr);
  ASSERT_NE(with, nullptr);
  EXPECT_NEAR(static_cast<double>(with->gain_ns), static_cast<double>(without->gain_ns), 100.0 * kUs);
  EXPECT_LT(with->gain_ns, 30 * 20 * 52 * kUs);
}

// Graphs hold what comes again in the same shapes: where sequences have another length each time little does, and that is said.
TEST(LaunchFindings, LaunchesInEverOtherShapes) {
  Script same, other;
  for (int i = 0; i < 30; ++i) {
    other.blocks(8 + static_cast<u32>(i));
    for (int k = 0; k < 10; ++k) same.run(50 * kUs, 10 * kUs, k % 2), other.run(50 * kUs, 10 * kUs, k % 2);
    same.sleep(2 * kMs), other.sleep(2 * kMs);
  }
  const auto of_same = find_findings(same.load()), of_other = find_findings(other.load());
  const Finding *repeated = find(of_same, "launch-bound"), *changing = find(of_other, "launch-bound");
  ASSERT_NE(repeated, nullptr);
  ASSERT_NE(changing, nullptr);
  EXPECT_EQ(repeated->text.find("graphs hold no others"), std::string::npos) << repeated->text;
  EXPECT_NE(changing->text.find("0 % of the launches come again, five and more in the same order and shapes"),
            std::string::npos)
      << changing->text;
  EXPECT_NE(changing->fix.find("a few lengths"), std::string::npos) << changing->fix;
  EXPECT_LT(changing->gain_ns, repeated->gain_ns / 10);
}

// What a program launches as graphs comes again as it was: a few other launches beside them are no reason to pad inputs.
TEST(LaunchFindings, GraphsAreLaunchesThatComeAgain) {
  Script script;
  for (int i = 0; i < 60; ++i) {
    script.blocks(8 + static_cast<u32>(i));
    script.run(50 * kUs, 10 * kUs), script.run(50 * kUs, 10 * kUs, 1);
    for (int k = 0; k < 4; ++k) script.replay(50 * kUs, 2, 5 * kUs);
  }
  const auto findings = find_findings(script.load());
  const Finding* const bound = find(findings, "launch-bound");
  ASSERT_NE(bound, nullptr);
  EXPECT_EQ(bound->text.find("graphs hold no others"), std::string::npos) << bound->text;
}

// Gaps of a framework's way from launch to launch are no missing batch, and those of a batch are no launches.
TEST(LaunchFindings, ManyShortPausesAreLaunchesAndLongOnesAreWork) {
  Script eager, loader;
  for (int i = 0; i < 200; ++i) {
    eager.run(5 * kUs, 10 * kUs), eager.sleep(45 * kUs);
    loader.run(5 * kUs, 10 * kUs), loader.sleep(i % 4 == 0 ? 180 * kUs : 0);
  }
  const auto of_launches = find_findings(eager.load());
  ASSERT_FALSE(of_launches.empty());
  EXPECT_EQ(of_launches[0].id, "launch-bound");
  EXPECT_EQ(of_launches[0].severity, Severity::Problem);
  EXPECT_EQ(evidence(of_launches[0], "between_launches_ns"), whole(199 * 35 * kUs));
  EXPECT_EQ(evidence(of_launches[0], "idle_ns"), whole(199 * 40 * kUs));
  const Finding* gaps = find(of_launches, "idle-gaps");
  ASSERT_NE(gaps, nullptr);
  EXPECT_EQ(gaps->severity, Severity::Hint);
  EXPECT_EQ(gaps->fix, "");
  const auto of_batches = find_findings(loader.load());
  ASSERT_FALSE(of_batches.empty());
  EXPECT_EQ(of_batches[0].id, "idle-gaps");
  EXPECT_EQ(of_batches[0].severity, Severity::Problem);
  EXPECT_NE(of_batches[0].fix, "");
  EXPECT_EQ(find(of_batches, "launch-bound"), nullptr);
}

// A loop that is launch-bound and saves pictures now and then: that is mended elsewhere, and brings as much as those pauses take.
TEST(LaunchFindings, WorkBesideManyLaunchesIsToldWithItsOwnGain) {
  Script saves, seldom;
  for (int i = 0; i < 200; ++i) {
    saves.run(5 * kUs, 10 * kUs), saves.sleep(i % 100 == 50 ? 2500 * kUs : 45 * kUs);
    seldom.run(5 * kUs, 10 * kUs), seldom.sleep(i == 50 ? 1200 * kUs : 45 * kUs);
  }
  const auto findings = find_findings(saves.load());
  const Finding* gaps = find(findings, "idle-gaps");
  ASSERT_NE(gaps, nullptr);
  EXPECT_NE(gaps->text.find(" of that in gaps longer than 1 ms"), std::string::npos) << gaps->text;
  EXPECT_NE(gaps->fix, "");
  EXPECT_NEAR(static_cast<double>(gaps->gain_ns), 2 * 2500.0 * kUs, 0.02 * 2 * 2500 * kUs);
  EXPECT_EQ(evidence(*gaps, "gain_ns"), number(gaps->gain_ns));
  ASSERT_NE(find(findings, "launch-bound"), nullptr);
  EXPECT_GT(find(findings, "launch-bound")->gain_ns, gaps->gain_ns);
  const auto of_seldom = find_findings(seldom.load());
  ASSERT_NE(find(of_seldom, "idle-gaps"), nullptr);
  EXPECT_EQ(find(of_seldom, "idle-gaps")->fix, "") << "less than a fifth";
}

// What the finding of a cause promises, the one of idle time does not promise once more; where the causes are two, it does.
TEST(LaunchFindings, AGainIsPromisedOnce) {
  Script loads, works;
  for (int i = 0; i < 20; ++i) {
    loads.run(4 * kUs, 100 * kUs), loads.load_module(300 * kUs);
    works.run(4 * kUs, 100 * kUs), works.load_module(50 * kUs), works.sleep(300 * kUs);
  }
  const auto of_loading = find_findings(loads.load());
  const Finding *loading = find(of_loading, "code-loading"), *idle = find(of_loading, "idle-gaps");
  ASSERT_NE(loading, nullptr);
  ASSERT_NE(idle, nullptr);
  EXPECT_GT(loading->gain_ns, 3'000'000u);
  EXPECT_EQ(idle->gain_ns, 0u);
  EXPECT_EQ(idle->severity, Severity::Hint);
  EXPECT_NE(idle->text.find("(code-loading)"), std::string::npos);
  const auto of_work = find_findings(works.load());
  ASSERT_NE(find(of_work, "idle-gaps"), nullptr);
  EXPECT_GT(find(of_work, "idle-gaps")->gain_ns, 3'000'000u);
}

TEST(LaunchFindings, GraphCandidatesButNotWithAnAllocationAmongThem) {
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

// Where such a sequence begins and ends, by the lines that launch its first and its last kernel.
TEST(LaunchFindings, GraphCandidatesHaveTheirLines) {
  Script loop;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 5; ++k) loop.run(20 * kUs, 5 * kUs, k == 4);
    loop.wait();
  }
  LoadedRun run = loop.load();
  ProcessTrace& process = run.processes.at(0);
  ASSERT_EQ(process.kernels.size(), 2u);
  process.lines.frames = {{},
                          {.function = "forward", .file = "/home/me/net.py", .line = 7},
                          {.function = "<module>", .file = "/home/me/train.py", .line = 12}};
  process.lines.origins = {{}, {.frame = 1}, {.frame = 2}};
  process.lines.kernels = {{0, 1, 80, 400 * kUs}, {1, 2, 20, 100 * kUs}};
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "graph-candidates");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "net.py:7 forward");
  EXPECT_EQ(evidence(*finding, "last_site"), text_value("train.py:12 <module>"));
  EXPECT_NE(finding->text.find("; the last of them at train.py:12 <module>"), std::string::npos) << finding->text;
}

}  // namespace
}  // namespace gputrace::test
