// Steps found in logs of launches, without any mark: of several threads that do not wait for each other; and what they are called.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/render/render.h"
#include "analysis/report.h"
#include "analysis/steps/find_steps.h"

namespace gputrace {
namespace {

// What threads give to the device beside each other, each in its own pace.
class Threads {
 public:
  void put(Nanos begin, LoopKind kind, u32 number, u32 thread) { puts_.push_back({begin, kind, number, thread}); }
  void mark(Nanos begin, LoopMark what, u32 thread) { put(begin, LoopKind::Mark, static_cast<u32>(what), thread); }
  StepFacts steps() {
    std::stable_sort(puts_.begin(), puts_.end(), [](const Put& a, const Put& b) { return a.begin < b.begin; });
    ProcessTrace process;
    process.loop_log.optimizer = "SGD.step";
    for (const Put& each : puts_) {
      process.end = each.begin + (each.kind == LoopKind::Mark ? 0 : 6'000);
      process.loop_log.add(each.kind, each.number, each.begin, process.end, each.thread);
    }
    find_steps(process, "");
    return process.steps;
  }

 private:
  struct Put {
    Nanos begin;
    LoopKind kind;
    u32 number, thread;
  };
  std::vector<Put> puts_;
};

// A server's threads answer the same requests side by side, in no order that comes again: the steps are those of the thread whose loop holds most, and it is said how
// many more the others had. One thread that does something else is none of them.
TEST(StepsOfThreads, OfThoseThatDoTheSameAreCounted) {
  ProcessTrace process;
  std::mt19937 random(1);
  const unsigned turns[] = {0, 80, 60, 70, 40};  // by thread
  for (u32 thread = 1; thread < std::size(turns); ++thread) {
    Nanos now = thread * 1000;
    for (unsigned turn = 0; turn < turns[thread]; ++turn) {
      now += 500'000 + random() % 2'000'000;
      for (u32 launch = 0; launch < 12; ++launch) {
        const u32 function = thread == 4 ? 100 + launch % 11 : launch;
        process.loop_log.add(LoopKind::Kernel, function, now, now + 5000, thread);
        now += 5000 + random() % 40'000;
      }
      process.loop_log.add(LoopKind::Wait, 0, now, now + 50'000, thread);
      now += 50'000;
    }
    process.end = std::max(process.end, now);
  }
  find_steps(process, "");
  EXPECT_EQ(process.steps.source, StepSource::Inferred);
  EXPECT_EQ(process.steps.steps.size(), 80u);
  EXPECT_EQ(process.steps.other_threads, 2u);
  EXPECT_EQ(process.steps.other_turns, 130u);
  LoadedRun run;
  run.processes.push_back(process);
  const Report report = make_report(run, {});
  const auto& rows = report.table("overview")->rows;
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Row& each) {
    return each[0] == Value(std::string("turns_of_other_threads"));
  });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(*row, Row({"turns_of_other_threads", i64{130}, "count", "on 2 other threads at the same time"}));
  ScreenStyle wide;
  wide.width = 400;
  EXPECT_NE(render_screen(report, wide).find("; 130 more on 2 other threads at the same time"), std::string::npos);
}

// Three models that are trained side by side, each in a thread of its own, their gradients computed by autograd's one thread: the steps are those of the
// thread that makes most. (All marks as one thread's were 173 "steps" of 18 us, of 180 that take some 4 ms each.)
TEST(StepsOfThreads, OfModelsTrainedSideBySideAreOneThreads) {
  Threads threads;
  std::vector<Nanos> wanted;
  std::mt19937 random(2);
  constexpr u32 kAutograd = 9;
  const unsigned turns[] = {40, 60, 80};
  for (u32 thread = 0; thread < std::size(turns); ++thread) {
    Nanos now = 1'000'000 + thread * 300'000;
    const auto launch = [&](u32 function, u32 by) {
      threads.put(now, LoopKind::Kernel, function, by);
      now += 20'000 + random() % 20'000;
    };
    for (unsigned turn = 0; turn < turns[thread]; ++turn) {
      if (thread == 2) wanted.push_back(now);
      for (u32 layer = 0; layer < 4 + thread; ++layer) launch(1, thread), launch(2, thread);
      threads.mark(now, LoopMark::ZeroGrad, thread);
      for (u32 layer = 0; layer < 4 + thread; ++layer) launch(3, kAutograd), launch(4, kAutograd);
      threads.mark(now, LoopMark::OptimizerBegins, thread);
      if (thread == 0) threads.mark(now, LoopMark::OptimizerBegins, thread);  // one that calls another: its step is one
      launch(5, thread);
      if (thread == 0) threads.mark(now, LoopMark::OptimizerStep, thread);
      threads.mark(now, LoopMark::OptimizerStep, thread);
    }
  }
  const StepFacts facts = threads.steps();
  EXPECT_EQ(facts.source, StepSource::Framework);
  EXPECT_EQ(facts.evidence.rfind("80 steps of SGD.step; ", 0), 0u) << facts.evidence;
  EXPECT_NE(facts.evidence.find("all on one of 3 threads"), std::string::npos) << facts.evidence;
  EXPECT_EQ(facts.other_threads, 2u);
  EXPECT_EQ(facts.other_turns, 100u);
  ASSERT_EQ(facts.steps.size(), wanted.size());
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    const double length = static_cast<double>(facts.steps[i].length());
    EXPECT_NEAR(static_cast<double>(facts.steps[i].begin - wanted[i]), 0, 0.05 * length);
  }
}

// A pool whose threads make a step each, one after the other, are one loop's.
TEST(StepsOfThreads, OfAPoolThatHandsTheLoopOverAreAllItsSteps) {
  Threads threads;
  Nanos now = 1'000'000;
  for (u32 turn = 0; turn < 60; ++turn, now += 100'000) {
    const u32 thread = turn % 3;
    threads.mark(now, LoopMark::ZeroGrad, thread);
    for (u32 kernel = 0; kernel < 8; ++kernel, now += 30'000) threads.put(now, LoopKind::Kernel, kernel, thread);
    threads.mark(now, LoopMark::OptimizerBegins, thread);
    threads.put(now += 1'000, LoopKind::Kernel, 9, thread);
    threads.mark(now += 10'000, LoopMark::OptimizerStep, thread);
  }
  const StepFacts facts = threads.steps();
  EXPECT_EQ(facts.steps.size(), 60u) << facts.evidence;
  EXPECT_EQ(facts.other_threads, 0u);
}

// A server whose threads generate beside each other.
TEST(StepsOfThreads, OfThreadsThatGenerateAreOneThreads) {
  Threads threads;
  const unsigned requests[] = {3, 5, 4};
  for (u32 thread = 0; thread < std::size(requests); ++thread) {
    Nanos now = 1'000'000 + thread * 370'000;
    const auto work = [&] {
      for (u32 kernel = 0; kernel < 6; ++kernel, now += 30'000) threads.put(now, LoopKind::Kernel, kernel, thread);
    };
    for (unsigned request = 0; request < requests[thread]; ++request, now += 400'000) {
      threads.mark(now, LoopMark::Prefill, thread), work();
      for (int token = 0; token < 10; ++token) threads.mark(now, LoopMark::Token, thread), work();
      threads.mark(now, LoopMark::GenerationEnds, thread);
    }
  }
  const StepFacts facts = threads.steps();
  const auto count = [&facts](RunPhase phase) {
    return std::count_if(facts.steps.begin(), facts.steps.end(),
                         [phase](const Step& step) { return step.phase == phase; });
  };
  EXPECT_EQ(count(RunPhase::Decode), 50);
  EXPECT_EQ(count(RunPhase::Prefill), 5);
  EXPECT_EQ(facts.other_threads, 2u);
  EXPECT_EQ(facts.other_turns, 70u);
}

// A thread for each of two devices, as XLA has them, each in its own pace: in some order their launches come again by chance, but not as often as each
// thread's own. A third one tried kernels before and has launched most.
TEST(StepsOfThreads, AThreadsOwnLoopIsTakenBeforeOneThatComesByChance) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ProcessTrace process;
    std::mt19937 random(seed);
    Nanos now = 0;
    for (int i = 0; i < 445; ++i, now += 20'000)
      process.loop_log.add(LoopKind::Kernel, 100 + static_cast<u32>(random()) % 40, now, now + 5000, 3);
    unsigned turns[2] = {0, 0};
    while (turns[0] < 60 || turns[1] < 60) {
      u32 device = static_cast<u32>(random()) % 2;
      if (turns[device] == 60 || turns[device] > turns[1 - device] + 2) device = 1 - device;
      for (u32 launch = 0; launch < 4; ++launch, now += 8000)
        process.loop_log.add(LoopKind::Kernel, 10 * device + launch, now, now + 5000, device);
      now += 50'000 + random() % 100'000;
      ++turns[device];
    }
    process.end = now;
    find_steps(process, "");
    EXPECT_EQ(process.steps.steps.size(), 60u) << "seed " << seed << ": " << process.steps.evidence;
  }
}

// What reduces over ranks may do so for a model that is only asked; what updates parameters trains.
TEST(InferredSteps, AreTrainingByTheirOptimizerAlone) {
  for (const bool trains : {false, true}) {
    ProcessTrace process;
    for (const char* symbol : {"gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "relu"}) {
      process.functions.emplace_back();
      process.functions.back().symbol = symbol;
    }
    if (trains) process.functions[2].symbol = "multi_tensor_adam_kernel";
    Nanos now = 0;
    for (int turn = 0; turn < 40; ++turn, now += 100'000) {
      for (const u32 function : {0u, 0u, 1u, 0u, 1u, 2u}) {
        process.loop_log.add(LoopKind::Kernel, function, now, now + 5000, 1);
        now += 10'000;
      }
      process.loop_log.add(LoopKind::Wait, 0, now, now + 20'000, 1);
      now += 20'000;
    }
    process.end = now;
    find_steps(process, "");
    ASSERT_EQ(process.steps.steps.size(), 40u);
    EXPECT_EQ(process.steps.steps[20].phase, trains ? RunPhase::Training : RunPhase::Other);
  }
}

}  // namespace
}  // namespace gputrace
