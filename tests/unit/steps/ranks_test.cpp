// Ranks of one job held against each other: who is behind, and with what.
#include <gtest/gtest.h>

#include "analysis/facts/step_facts.h"
#include "analysis/findings/findings.h"
#include "analysis/report.h"
#include "analysis/run/communicator_ranks.h"
#include "analysis/run/quality.h"
#include "analysis/steps/rank_steps.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/trace_builder.h"

namespace gputrace {
namespace {

using namespace test;

struct Spent {
  u64 compute = 0, collective = 0, host = 0, input = 0;
  u64 busy = 0;  // of the host, also while its device waits in a collective; 0: not known
};

// Ten steps that spend their time alike.
ProcessTrace rank(const char* number, const Spent& spent) {
  ProcessTrace process;
  process.who.rank = number;
  process.device.collected = true;
  process.steps.source = StepSource::Framework;
  Nanos at = 0;
  for (int i = 0; i < 10; ++i) {
    Step step;
    step.divided = true;
    step.parts[static_cast<unsigned>(StepCategory::Compute32)] = spent.compute;
    step.parts[static_cast<unsigned>(StepCategory::Collective)] = spent.collective;
    step.parts[static_cast<unsigned>(StepCategory::Host)] = spent.host;
    step.parts[static_cast<unsigned>(StepCategory::Input)] = spent.input;
    step.host_busy_ns = spent.busy;
    step.begin = at;
    at += static_cast<Nanos>(spent.compute + spent.collective + spent.host + spent.input);
    step.end = at;
    process.steps.steps.push_back(step);
  }
  return process;
}

LoadedRun run_of(std::vector<ProcessTrace> processes) {
  LoadedRun run;
  run.processes = std::move(processes);
  return run;
}

// All steps take 100: rank 2 has more to do on the host, and the others wait for it in their collectives.
TEST(Ranks, TheOthersWaitForTheOneThatIsBehind) {
  const LoadedRun run = run_of({rank("10", {.compute = 50, .collective = 40, .host = 10}),
                                rank("2", {.compute = 50, .collective = 5, .host = 45}),
                                rank("0", {.compute = 50, .collective = 38, .host = 12})});
  const auto ranks = rank_steps(run);
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[1].rank, 2);
  EXPECT_EQ(ranks[2].rank, 10);
  EXPECT_EQ(ranks[1].alone_ns, 100u);
  EXPECT_DOUBLE_EQ(ranks[1].score, 0.33);  // more than the median's 67
  EXPECT_EQ(ranks[1].most, StepCategory::Host);
  EXPECT_EQ(ranks[1].more_ns, 33u);
  EXPECT_EQ(straggler_of(ranks), &ranks[1]);
}

// A launcher that starts them anew when one has failed: the newest ones are compared that came to steps.
TEST(Ranks, AreThoseThatWereStartedLast) {
  const auto started = [](u32 restart, const char* number, u64 host) {
    ProcessTrace process = rank(number, {.compute = 50, .collective = 40, .host = host});
    process.who.restart = restart, process.who.job = "a job";
    return process;
  };
  LoadedRun run = run_of({started(0, "0", 10), started(0, "1", 11), started(1, "0", 20), started(1, "1", 21)});
  auto ranks = rank_steps(run);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].process, 2u);
  EXPECT_EQ(ranks[1].process, 3u);
  const Report report = make_report(run, {});
  const Table* const table = report.table("ranks");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rows.size(), 2u);
  ASSERT_FALSE(table->notes.empty());
  EXPECT_EQ(table->notes.back(), "as they were started last (restart 1): what they did before is not in it");
  const Coverage coverage = coverage_of(run);
  EXPECT_TRUE(std::any_of(coverage.remarks.begin(), coverage.remarks.end(), [](const std::string& remark) {
    return remark == "the launcher started its ranks anew: 2 processes of before are counted too";
  }));
  EXPECT_EQ(name_of(run.processes[2]), "rank 0 (restart 1)");
  run.processes[3].steps.steps.clear();  // it failed again before it came to steps
  ranks = rank_steps(run);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].process, 0u);
  run.processes[3].who.restart = 0;  // two of one start
  run.processes[3].steps = run.processes[1].steps;
  EXPECT_TRUE(rank_steps(run).empty());
}

// Accumulation without no_sync(): four backward passes a step that add up over the ranks, or only the last of them.
TEST(Ranks, GradientsThatAreAddedUpForNothing) {
  constexpr u64 kSteps = 10, kPasses = 4;
  const auto passes_of = [](bool each_pass, bool zeroed_between) {
    GradientPassFacts facts;
    GradientPasses passes(facts);
    passes.reduced();  // of somebody else
    for (u64 step = 0; step < kSteps; ++step) {
      for (u64 pass = 0; pass < kPasses; ++pass) {
        passes.forward();
        if (each_pass || pass + 1 == kPasses)
          for (int bucket = 0; bucket < 3; ++bucket) passes.reduced();
        if (zeroed_between) passes.taken();
      }
      passes.taken();
    }
    return facts;
  };
  const GradientPassFacts needless = passes_of(true, false), last_only = passes_of(false, false);
  EXPECT_EQ(needless.reduced, kSteps * kPasses);
  EXPECT_EQ(needless.needless, kSteps * (kPasses - 1));
  EXPECT_EQ(last_only.reduced, kSteps);
  EXPECT_EQ(last_only.needless, 0u);
  EXPECT_EQ(passes_of(true, true).needless, 0u) << "gradients of its own in each pass (SAM)";

  const auto finding_of = [](const GradientPassFacts& passes) -> std::optional<Finding> {
    std::vector<ProcessTrace> ranks = {rank("0", {.compute = 40, .collective = 40, .host = 20}),
                                       rank("1", {.compute = 40, .collective = 50, .host = 10})};
    for (ProcessTrace& each : ranks) {
      each.gradient_passes = passes;
      each.lines.operations.resize(2);
      each.options["GPUTRACE_COLLECT"] = "api,device,ops";
    }
    const auto findings = find_findings(run_of(std::move(ranks)));
    const Finding* const found = find(findings, "needless-reductions");
    return found ? std::optional(*found) : std::nullopt;
  };
  const auto finding = finding_of(needless);
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->text.find("30 of 40 backward passes"), std::string::npos) << finding->text;
  EXPECT_EQ(finding->severity, Severity::Problem);
  EXPECT_EQ(finding->gain_ns_per_step, 30u) << "three of four, of the 40 that take the rank that waits least";
  EXPECT_EQ(finding->gain_ns, 300u);
  EXPECT_FALSE(finding_of(last_only));
}

TEST(Ranks, AFindingNamesIt) {
  const auto even = find_findings(run_of({rank("0", {.compute = 50, .collective = 30, .host = 20}),
                                          rank("1", {.compute = 50, .collective = 27, .host = 23})}));
  EXPECT_EQ(find(even, "straggler"), nullptr);
  // Behind, and nobody waits: its collectives are as long.
  const auto alone = find_findings(run_of({rank("0", {.compute = 50, .collective = 30, .host = 20}),
                                           rank("1", {.compute = 50, .collective = 30, .host = 40})}));
  EXPECT_EQ(find(alone, "straggler"), nullptr);
  const auto findings = find_findings(run_of({rank("0", {.compute = 50, .collective = 40, .input = 10}),
                                              rank("1", {.compute = 50, .collective = 10, .input = 40})}));
  const Finding* finding = find(findings, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(*finding, "rank"), whole(1));
  EXPECT_EQ(evidence(*finding, "more_on"), Value(std::string(step_category_name(StepCategory::Input))));
  EXPECT_EQ(evidence(*finding, "more_ns"), whole(300));
  EXPECT_EQ(finding->gain_ns, 300u);
  EXPECT_EQ(finding->severity, Severity::Problem);
}

// Rank 1 began earlier, and both hosts are as slow: its device waits in each collective for what rank 0's gets later, and that costs nothing.
TEST(Ranks, ARankThatIsAheadIsNoQuicker) {
  const Spent behind{.compute = 10, .collective = 5, .host = 85, .busy = 99};
  const auto as_slow =
      run_of({rank("0", behind), rank("1", {.compute = 10, .collective = 80, .host = 10, .busy = 97})});
  EXPECT_EQ(straggler_of(rank_steps(as_slow)), nullptr);
  EXPECT_EQ(find(find_findings(as_slow), "straggler"), nullptr);
  // Its host needs 60 for a step: that is what is left, though its device waits for 75.
  const auto findings =
      find_findings(run_of({rank("0", behind), rank("1", {.compute = 10, .collective = 80, .host = 10, .busy = 60})}));
  const Finding* finding = find(findings, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->gain_ns, 10u * (100 - 60));
  EXPECT_EQ(evidence(*finding, "waited_ns"), whole(750));
  EXPECT_EQ(evidence(*finding, "more_ns"), whole(10 * (99 - 60))) << "not what its collectives hide of the other's";
}

TEST(Ranks, NothingIsSaidOfOneOrOfSeveralRuns) {
  const Spent spent{.compute = 50, .collective = 40, .host = 10};
  EXPECT_TRUE(rank_steps(run_of({rank("0", spent)})).empty());
  EXPECT_TRUE(rank_steps(run_of({rank("0", spent), rank("", spent)})).empty());
  EXPECT_TRUE(rank_steps(run_of({rank("0", spent), rank("0", spent)})).empty());
}

// Of each process the communicators that it made, as {id, rank, ranks}.
std::vector<std::string> ranks_taken(const std::vector<std::vector<CommunicatorFacts>>& made) {
  std::vector<ProcessTrace> processes(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    processes[i].who.run = "one";
    processes[i].library.communicators = made[i];
  }
  take_ranks_of_communicators(processes);
  std::vector<std::string> ranks;
  for (const ProcessTrace& process : processes) {
    ranks.push_back(process.who.rank);
    EXPECT_EQ(process.notes.size(), process.who.rank.empty() ? 0u : 1u);
  }
  return ranks;
}

CommunicatorFacts of(u64 id, i32 rank, i32 ranks) { return {.handle = id, .id = id, .rank = rank, .ranks = ranks}; }

TEST(Ranks, AreThoseOfTheLargestCommunicatorThatAllMade) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(ranks_taken({{of(7, 1, 2)}, {of(7, 0, 2)}, {}}), (Strings{"1", "0", ""}));
  EXPECT_EQ(ranks_taken({{of(8, 0, 2), of(7, 2, 3)}, {of(7, 0, 3)}, {of(9, 1, 2), of(7, 1, 3)}}),
            (Strings{"2", "0", "1"}));
  EXPECT_EQ(ranks_taken({{of(7, 0, 2)}, {of(7, 1, 2)}, {of(8, 0, 2)}, {of(8, 1, 2)}}), Strings(4))
      << "two groups, no world";
  EXPECT_EQ(ranks_taken({{of(7, 0, 2), of(7, 1, 2)}, {of(7, 0, 2)}}), Strings(2)) << "several devices in one process";
  EXPECT_EQ(ranks_taken({{of(7, 0, 2)}, {of(7, 0, 2)}}), Strings(2)) << "no rank twice";
  EXPECT_EQ(ranks_taken({{of(7, 0, 1)}}), Strings(1)) << "alone";
  EXPECT_EQ(ranks_taken({{of(0, 0, 2)}, {of(0, 1, 2)}}), Strings(2)) << "whose id is not known";
}

TEST(Ranks, OfALauncherAreKept) {
  std::vector<ProcessTrace> processes(2);
  processes[0].who.run = processes[1].who.run = "one";
  processes[0].who.rank = "5";
  processes[0].library.communicators = {of(7, 0, 2)};
  processes[1].library.communicators = {of(7, 1, 2)};
  take_ranks_of_communicators(processes);
  EXPECT_EQ(processes[0].who.rank, "5");
  EXPECT_EQ(processes[1].who.rank, "");
}

}  // namespace
}  // namespace gputrace
