// Steps by the marks of a framework and by NVTX ranges, from traces of planted programs; and what they consist of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/report.h"
#include "analysis/steps/find_steps.h"
#include "analysis/steps/step_marks.h"
#include "tests/unit/steps/framework_loop.h"

namespace gputrace {
namespace {

using namespace test;

std::vector<Nanos> begins_of(const StepFacts& facts, RunPhase phase) {
  std::vector<Nanos> begins;
  for (const Step& step : facts.steps) {
    if (step.phase == phase) begins.push_back(step.begin);
  }
  return begins;
}

TEST(MarkedSteps, OfBatchesAndAnOptimizer) {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.batch(300 * kUs);
    loop.forward();
    loop.update();
    loop.wait();
  }
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
  EXPECT_EQ(facts.batches, 20u);
  EXPECT_EQ(facts.batch_ns, 20u * 300 * kUs);
  for (std::size_t i = 1; i < facts.steps.size(); ++i) {
    const Step& step = facts.steps[i];
    EXPECT_EQ(std::accumulate(step.parts.begin(), step.parts.end(), u64{0}), step.length());
    EXPECT_EQ(step.waited_for_batches_ns, 300u * kUs);
  }
}

// The whole step captured in a graph, the optimizer's in it: its mark comes once more, while nothing is launched, and then the graph.
TEST(MarkedSteps, OfAGraphThatHoldsTheOptimizersStep) {
  constexpr int kEager = 3, kReplays = 60;
  const auto trained = [](bool captured, bool batches, int replays) {
    Loop loop;
    const auto load = [&] {
      loop.begins();
      if (batches) loop.batch(300 * kUs);
      loop.copy_to_device(4096, MemoryKind::Pageable, false);
    };
    for (int i = 0; i < kEager; ++i) load(), loop.forward(), loop.update(), loop.fetch();
    if (captured) loop.operation(kOptimizer, loop.now()), loop.sleep(400 * kMs);
    for (int i = 0; i < replays; ++i) load(), loop.replay(4 * kUs, 3, 100 * kUs), loop.fetch();
    loop.wait();
    return std::pair(loop.load(), loop.wanted());
  };
  for (const bool batches : {false, true}) {
    const auto [run, wanted] = trained(true, batches, kReplays);
    const StepFacts& facts = run.processes[0].steps;
    EXPECT_EQ(facts.source, StepSource::Framework);
    // Without a mark of where it begins the first replay has what lies before it, and is warm-up.
    const auto first = static_cast<std::ptrdiff_t>(batches ? kEager : kEager + 1);
    EXPECT_EQ(begins_of(facts, RunPhase::WarmUp).size(), static_cast<std::size_t>(first));
    EXPECT_EQ(begins_of(facts, RunPhase::Training), std::vector(wanted.begin() + first, wanted.end())) << batches;
    EXPECT_NE(facts.evidence.find("60 of them by a graph that holds such a step"), std::string::npos) << facts.evidence;
    EXPECT_EQ(facts.batches, batches ? u64{kReplays} : 0u);
  }
  const auto [evaluates, begins] = trained(false, true, kReplays);  // a graph of the model alone
  EXPECT_EQ(begins_of(evaluates.processes[0].steps, RunPhase::Training).size(), std::size_t{kEager});
  const auto few = trained(true, true, kEager).first;
  EXPECT_EQ(few.processes[0].steps.evidence.find("graph"), std::string::npos);
}

TEST(MarkedSteps, AccumulateAndAreFollowedByEvaluation) {
  Loop loop;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 10; ++i) {
      loop.begins();
      for (int micro = 0; micro < 4; ++micro) loop.batch(50 * kUs), loop.forward();
      loop.update();
      loop.wait();
    }
    loop.batch(10 * kUs);  // found the end of the data
    for (int i = 0; i < 5; ++i) loop.batch(50 * kUs), loop.forward(), loop.wait();
    loop.batch(10 * kUs);
  }
  const LoadedRun run = loop.load();
  const StepFacts& facts = run.processes[0].steps;
  EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
  EXPECT_EQ(begins_of(facts, RunPhase::Evaluation).size(), 15u);
  const Report report = make_report(run, {});
  std::map<std::string, Row> metric;
  for (const Row& row : report.table("overview")->rows) metric[std::get<std::string>(row[0])] = row;
  EXPECT_EQ(metric["steps"][1], Value(i64{45}));
  EXPECT_EQ(metric["steps_counted"], Row({"steps_counted", i64{30}, "count", "beside 15 of evaluation"}));
}

// An optimizer that is none of PyTorch's (fastai's, Keras's) leaves no mark: what has a backward pass is training all the same.
TEST(MarkedSteps, TrainWithAnOptimizerThatIsNotMarked) {
  Loop loop;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 10; ++i) {
      loop.begins();
      loop.batch(50 * kUs), loop.forward(), loop.backward(), loop.backward();
      loop.wait();
    }
    loop.batch(10 * kUs);
    for (int i = 0; i < 5; ++i) loop.batch(50 * kUs), loop.forward(), loop.wait();
    loop.batch(10 * kUs);
  }
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
  EXPECT_EQ(begins_of(facts, RunPhase::Evaluation).size(), 15u);
  EXPECT_EQ(statistics_of(facts).counted, 30u);
  EXPECT_EQ(facts.evidence,
            std::string("30 batches of _SingleProcessDataLoaderIter.__next__ with a backward pass, and no "
                        "step of an optimizer of PyTorch's"));
}

// A GradScaler leaves out the optimizer's step where a gradient is not finite: of one batch, or of those that are accumulated.
TEST(MarkedSteps, TrainWhereTheOptimizersStepIsSkipped) {
  for (const int batches : {1, 4}) {
    Loop loop;
    for (int i = 0; i < 20; ++i) {
      loop.begins();
      for (int micro = 0; micro < batches; ++micro) loop.batch(50 * kUs), loop.forward(), loop.backward();
      if (i != 3 && i != 11) loop.update();
      loop.wait();
    }
    const StepFacts facts = loop.load().processes[0].steps;
    EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
    EXPECT_EQ(facts.steps.size(), 20u);
    EXPECT_EQ(statistics_of(facts).counted, 20u);
  }
}

// A loader that is one batch ahead finds the end of the data before the last batch is worked on; then the model is saved.
TEST(MarkedSteps, TheLastEvaluationEndsWhereTheOthersDo) {
  Loop loop;
  for (int i = 0; i < 10; ++i) loop.begins(), loop.batch(50 * kUs), loop.forward(), loop.update(), loop.wait();
  Nanos begin = 0;
  for (int i = 0; i < 5; ++i) {
    begin = loop.now();
    loop.batch(50 * kUs);
    for (int layer = 0; layer < 8; ++layer) loop.forward();
    loop.wait();
  }
  const Nanos end = loop.now();
  loop.sleep(400 * kMs);
  loop.run(4 * kUs, 100 * kUs);
  loop.wait();
  const StepFacts facts = loop.load().processes[0].steps;
  ASSERT_EQ(begins_of(facts, RunPhase::Evaluation).size(), 5u);
  const Step& last = facts.steps.back();
  EXPECT_EQ(last.begin, begin);
  EXPECT_LE(last.end, end);
  EXPECT_GE(last.end, end - 100 * kUs);
}

// What lies behind a request that found no more data is no batch of an evaluation: saving, and a kernel for what the next epoch needs.
TEST(MarkedSteps, WhatFollowsTheEndOfTheDataIsNoEvaluation) {
  for (const int evaluated : {0, 1, 4}) {
    Loop loop;
    const auto end_of_data = [&] {
      loop.batch(10 * kUs);
      loop.copy_to_host(100'000, MemoryKind::Pageable, false);
      loop.run(4 * kUs, 10 * kUs, 1);
    };
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int i = 0; i < 8; ++i) {
        loop.begins();
        loop.batch(50 * kUs);
        for (int k = 0; k < 15; ++k) loop.forward();
        loop.update();
        loop.wait();
      }
      end_of_data();
      for (int i = 0; i < evaluated; ++i) {
        loop.batch(50 * kUs);
        for (int k = 0; k < 5; ++k) loop.forward();
        loop.wait();
      }
      if (evaluated) end_of_data();
    }
    const StepFacts facts = loop.load().processes[0].steps;
    EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
    EXPECT_EQ(begins_of(facts, RunPhase::Evaluation).size(), 3u * static_cast<unsigned>(evaluated));
  }
}

TEST(MarkedSteps, TwoOptimizersOfOneBatchAreOneStep) {
  Loop loop;
  for (int i = 0; i < 12; ++i) {
    loop.begins();
    loop.batch(100 * kUs);
    for (int which = 0; which < 2; ++which) loop.forward(), loop.update();
    loop.wait();
  }
  EXPECT_EQ(begins_of(loop.load().processes[0].steps, RunPhase::Training), loop.wanted());
}

// Without a loader the begin is where the calls between two steps of the optimizer begin anew: what waits for the loss is the end.
TEST(MarkedSteps, OfAnOptimizerAlone) {
  Loop loop;
  loop.load_module(500 * kUs);
  loop.set(20 * kUs, false);
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pageable, false);
    loop.forward();
    loop.forward();
    loop.update();
    if (i % 5 == 0) loop.copy_to_host(64, MemoryKind::Pageable, false);
  }
  loop.wait();
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
}

void zero_grad(Loop& loop) {
  const Nanos begin = loop.now();
  loop.sleep(2 * kUs);
  loop.operation("Optimizer.zero_grad#SGD.zero_grad", begin);
}

// Gradients are set to zero, and of a model of eight layers what it computes forward and backward is launched.
void step_without_optimizer(Loop& loop, bool marks_backward) {
  loop.begins();
  zero_grad(loop);
  loop.copy_to_device(4096, MemoryKind::Pageable, false);
  for (int layer = 0; layer < 8; ++layer) loop.run(4 * kUs, 20 * kUs), loop.run(4 * kUs, 20 * kUs, 1);
  if (marks_backward) loop.backward();
}

// GradScaler skips what would overflow: no step of the optimizer is made, and layers are no steps.
TEST(MarkedSteps, OfAnOptimizerWhoseStepsAreSkipped) {
  Loop loop;
  for (int i = 0; i < 6; ++i) step_without_optimizer(loop, false), loop.copy_to_host(64, MemoryKind::Pageable, false);
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(facts.steps.size(), 6u);
  for (std::size_t i = 0; i < facts.steps.size(); ++i)
    EXPECT_NEAR(static_cast<double>(facts.steps[i].begin), static_cast<double>(loop.wanted()[i]),
                0.02 * static_cast<double>(facts.steps[i].length()))
        << i;
}

// The first step was skipped, the second made.
TEST(MarkedSteps, OfAnOptimizerThatMadeOneStepOfTwo) {
  Loop loop;
  for (int i = 0; i < 2; ++i) {
    step_without_optimizer(loop, true);
    if (i == 1) loop.update();
    loop.copy_to_host(64, MemoryKind::Pageable, false);
  }
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(facts.steps.size(), 2u);
}

// Of a run's first steps some are skipped, and later one: each is a step, as long as it was.
TEST(MarkedSteps, OfAnOptimizerThatSkipsSomeSteps) {
  for (const bool zero_is_last : {false, true}) {
    Loop loop;
    for (int i = 0; i < 20; ++i) {
      loop.begins();
      loop.copy_to_device(4096, MemoryKind::Pageable, false);
      if (!zero_is_last) zero_grad(loop);
      for (int layer = 0; layer < 8; ++layer) loop.run(4 * kUs, 20 * kUs), loop.run(4 * kUs, 20 * kUs, 1);
      loop.backward();
      if (i > 2 && i != 12) loop.update();
      if (zero_is_last) zero_grad(loop);
      loop.copy_to_host(64, MemoryKind::Pageable, false);
    }
    const StepFacts facts = loop.load().processes[0].steps;
    EXPECT_EQ(facts.source, StepSource::Framework);
    ASSERT_EQ(facts.steps.size(), 20u) << zero_is_last << " " << facts.evidence;
    for (std::size_t i = 0; i < facts.steps.size(); ++i)
      EXPECT_NEAR(static_cast<double>(facts.steps[i].begin), static_cast<double>(loop.wanted()[i]),
                  0.02 * static_cast<double>(facts.steps[i].length()))
          << i;
  }
}

void expect_begins(const StepFacts& facts, const std::vector<Nanos>& wanted) {
  EXPECT_EQ(facts.source, StepSource::Framework);
  ASSERT_EQ(facts.steps.size(), wanted.size()) << facts.evidence;
  for (std::size_t i = 1; i < facts.steps.size(); ++i)
    EXPECT_NEAR(static_cast<double>(facts.steps[i].begin), static_cast<double>(wanted[i]),
                0.02 * static_cast<double>(facts.steps[i].length()))
        << i << " " << facts.evidence;
}

// LBFGS calls a closure within its step, as often as it likes: that sets gradients to zero, computes forward and backward. No step was skipped.
TEST(MarkedSteps, OfAnOptimizerThatCallsAClosure) {
  for (const bool first_as_well : {false, true}) {
    Loop loop;
    for (int i = 0; i < 20; ++i) {
      loop.begins();
      if (first_as_well) zero_grad(loop);
      const Nanos begin = loop.now();
      for (int call = 0; call < 2 + i % 2; ++call) {
        zero_grad(loop);
        for (int layer = 0; layer < 4; ++layer) loop.run(4 * kUs, 20 * kUs), loop.run(4 * kUs, 20 * kUs, 1);
        loop.backward();
      }
      for (int k = 0; k < 2; ++k) loop.run(4 * kUs, 20 * kUs, 1);
      loop.operation("Optimizer.step#LBFGS.step", begin);
      loop.copy_to_host(64, MemoryKind::Pageable, false);
    }
    const StepFacts facts = loop.load().processes[0].steps;
    EXPECT_EQ(facts.evidence.find("skipped"), std::string::npos) << facts.evidence;
    expect_begins(facts, loop.wanted());
  }
}

// One optimizer that wraps another one (Lookahead), and does something of its own each fifth time.
TEST(MarkedSteps, OfAnOptimizerWithinAnother) {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pageable, false);
    for (int layer = 0; layer < 4; ++layer) loop.run(4 * kUs, 20 * kUs);
    zero_grad(loop);
    loop.backward();
    const Nanos begin = loop.now();
    loop.sleep(kUs);
    loop.update();
    for (int k = 0; i % 5 == 4 && k < 4; ++k) loop.run(4 * kUs, 20 * kUs, 1);
    loop.operation("Optimizer.step#Lookahead.step", begin);
  }
  expect_begins(loop.load().processes[0].steps, loop.wanted());
}

// Sharpness-aware minimization: two passes to each step, gradients set to zero behind each. No step was skipped.
TEST(MarkedSteps, OfAnOptimizerWithTwoPassesToAStep) {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pageable, false);
    for (int pass = 0; pass < 2; ++pass) {
      for (int layer = 0; layer < 4; ++layer) loop.run(4 * kUs, 20 * kUs);
      loop.backward();
      loop.run(4 * kUs, 20 * kUs, 1);
      if (pass == 1) loop.update();
      zero_grad(loop);
    }
  }
  expect_begins(loop.load().processes[0].steps, loop.wanted());
}

// A GAN: in each turn the one optimizer makes a step, then the other.
TEST(MarkedSteps, OfTwoOptimizersInTurn) {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pageable, false);
    for (int part = 0; part < 2; ++part) {
      for (int layer = 0; layer < (part ? 3 : 6); ++layer) loop.run(4 * kUs, 20 * kUs);
      zero_grad(loop);
      for (int layer = 0; layer < 3; ++layer) loop.backward();
      for (int layer = 0; part && layer < 3; ++layer) loop.backward();
      loop.update();
    }
  }
  expect_begins(loop.load().processes[0].steps, loop.wanted());
}

// What is read each second time makes no two steps one.
TEST(MarkedSteps, OfALoopThatReadsEachSecondLoss) {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pageable, false);
    for (int layer = 0; layer < 6; ++layer) loop.run(4 * kUs, 20 * kUs);
    zero_grad(loop);
    loop.backward();
    loop.update();
    if (i % 2 == 0) loop.run(4 * kUs, 20 * kUs, 1), loop.copy_to_host(64, MemoryKind::Pageable, false);
  }
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.steps.size(), 20u) << facts.evidence;
}

// The first step makes the optimizer's state, so it is like the others in its end alone; and the host pauses before each update. Steps
// begin with their batch nevertheless, also those after which something was saved.
TEST(MarkedSteps, OfAnOptimizerThatMakesItsStateInTheFirstStep) {
  Loop loop;
  for (int i = 0; i < 30; ++i) {
    loop.begins();
    loop.copy_to_device(4096, MemoryKind::Pinned, true);
    loop.forward();
    for (int k = 0; k < 6; ++k) loop.run(4 * kUs, 20 * kUs, 1, Planted::kStream + 1);
    for (int k = 0; i == 0 && k < 6; ++k) loop.set(2 * kUs, true);
    loop.sleep(300 * kUs);
    loop.update(20 * kUs);
    for (int k = 0; i % 5 == 0 && k < 12; ++k) loop.copy_to_host(100'000, MemoryKind::Pageable, false);
  }
  loop.wait();
  const StepFacts facts = loop.load().processes[0].steps;
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(begins_of(facts, RunPhase::Training), loop.wanted());
}

// What happens before the first step is no idle time of the loop.
TEST(MarkedSteps, StartUpIsNotTheLoops) {
  Loop loop;
  loop.forward();
  loop.wait();
  loop.sleep(50 * kMs);
  for (int i = 0; i < 20; ++i) {
    loop.batch(10 * kUs);
    loop.forward();
    loop.update();
    loop.wait();
  }
  const LoadedRun run = loop.load();
  ASSERT_NE(run.processes[0].loop, nullptr);
  for (const Finding& finding : find_findings(run)) EXPECT_LT(finding.gain_ns, 10u * kMs) << finding.text;
}

// A host that runs ahead has given all steps away before the device is through with the first few: the loop is what the device did of
// them, and the calls that gave it.
TEST(MarkedSteps, AreTheDevicesWhereTheHostRunsAhead) {
  Loop loop;
  loop.forward();
  loop.wait();
  loop.sleep(50 * kMs);
  for (int i = 0; i < 40; ++i) loop.batch(1 * kUs), loop.forward(), loop.update();
  loop.wait();
  const LoadedRun run = loop.load();
  const ProcessTrace& process = run.processes[0];
  ASSERT_TRUE(process.steps.on_device);
  ASSERT_NE(process.loop, nullptr);
  const StepStatistics usual = statistics_of(process.loop->steps);
  EXPECT_EQ(usual.mean_ns, 150u * kUs);
  const DeviceTimes& device = process.loop->device.devices[0];
  EXPECT_EQ(device.busy_ns, usual.counted * 150u * kUs);
  EXPECT_EQ(device.idle_ns, 0u);
  EXPECT_EQ(process.loop->plain_launches, usual.counted * 2);
  for (const Finding& finding : find_findings(run)) EXPECT_FALSE(finding.gain_ns_per_step) << finding.text;
}

TEST(MarkedSteps, AreNotPassesOfACompilerThatHaveTheirName) {
  LoopLog log;
  const auto ranges = [&log](const std::string& name, u32 count) {
    log.names.push_back(name);
    const u32 number = static_cast<u32>(log.names.size() - 1);
    for (u32 i = 0; i < count; ++i) log.ranges.push_back({1000 * i, 1000 * i + 500, number, 1});
  };
  ranges("XlaPass:#name=algsimp,module=a_inference_one_step_on_data__.16,program_id=36#", 16);
  ranges("Thunk:#name=jit(step)/mul,hlo_op=loop_multiply_fusion#", 40);
  ranges("XlaModule:#hlo_module=jit_step,program_id=3#", 8);
  EXPECT_FALSE(steps_of_usual_ranges(log));
  EXPECT_EQ(steps_of_ranges(log, "hlo_module=jit_step").value().steps.size(), 8u) << "who asks for them has them";
  ranges("train step", 5);
  EXPECT_EQ(steps_of_usual_ranges(log).value().steps.size(), 5u);
}

TEST(MarkedSteps, TheNamesOfRangesTellPhases) {
  const std::pair<const char*, RunPhase> kNames[] = {{"eval", RunPhase::Evaluation},
                                                     {"Eval_3", RunPhase::Evaluation},
                                                     {"model.Validation", RunPhase::Evaluation},
                                                     {"train_TEST", RunPhase::Evaluation},
                                                     {"retrieval", RunPhase::Other},
                                                     {"latest", RunPhase::Other},
                                                     {"invalid state, test", RunPhase::Evaluation},
                                                     {"Training", RunPhase::Training},
                                                     {"pretrain", RunPhase::Training},
                                                     {"PREFILL 1", RunPhase::Prefill},
                                                     {"decode_step", RunPhase::Decode},
                                                     {"tests", RunPhase::Other},
                                                     {"", RunPhase::Other}};
  for (const auto& [name, phase] : kNames) {
    LoopLog log;
    log.names.push_back(name);
    for (u32 i = 0; i < 4; ++i) log.ranges.push_back({1000 * i, 1000 * i + 500, 0, 1});
    const auto found = steps_of_ranges(log, "");
    ASSERT_TRUE(found) << name;
    for (const Step& step : found->steps) EXPECT_EQ(step.phase, phase) << name;
  }
}

}  // namespace
}  // namespace gputrace
