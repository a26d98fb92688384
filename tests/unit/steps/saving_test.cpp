// Where a program saves its state: by what it copies to the host, and from where.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/steps/find_steps.h"
#include "tests/unit/steps/framework_loop.h"

namespace gputrace {
namespace {

using namespace test;

// The program's line, torch.save's inner function, and TensorBoard's; copies are made in either of these.
class SavingLoop : public Loop {
 public:
  static constexpr u32 kLine = 101, kSave = 103, kHistogram = 104;
  static constexpr int kCopies = 12;

  SavingLoop() {
    trace().frame(kLine, 0, "<module>", "/home/me/train.py", 9);
    trace().frame(102, kLine, "save", "/x/site-packages/torch/serialization.py", 960);
    trace().frame(kSave, 102, "_save", "/x/site-packages/torch/serialization.py", 1200);
    trace().frame(kHistogram, kLine, "SummaryWriter.add_histogram",
                  "/x/site-packages/torch/utils/tensorboard/writer.py", 480);
    calls_come_from(kLine);
  }
  void copies_from(u32 frame) {
    calls_come_from(frame);
    for (int i = 0; i < kCopies; ++i) copy_to_host(4096, MemoryKind::Pageable, false);
    calls_come_from(kLine);
  }

 private:
  void calls_come_from(u32 frame) {
    trace().add<Stack>(main(), "", now(), now(), [&](auto& r) { r.frame = frame, r.frames = 1; });
  }
};

i64 steps_of(const StepFacts& facts, RunPhase phase) {
  return std::count_if(facts.steps.begin(), facts.steps.end(), [&](const Step& step) { return step.phase == phase; });
}

// Where lines are known it is those that write a model which save: a log of histograms copies as much.
TEST(Saving, IsToldByItsFunction) {
  SavingLoop loop;
  for (int i = 0; i < 30; ++i) {
    loop.batch(50 * kUs);
    loop.forward();
    loop.update();
    if (i % 10 == 9) loop.copies_from(SavingLoop::kSave);
    if (i % 10 == 4) loop.copies_from(SavingLoop::kHistogram);
    loop.wait();
  }
  const ProcessTrace process = loop.load().processes[0];
  ASSERT_EQ(process.steps.steps.size(), 30u);
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_EQ(process.steps.steps[i].phase == RunPhase::Checkpoint, i % 10 == 9) << i;
  EXPECT_EQ(statistics_of(process.steps).counted, 27u);
  const auto saved = std::find_if(process.steps.phases.begin(), process.steps.phases.end(),
                                  [](const PhaseSpan& phase) { return phase.phase == RunPhase::Checkpoint; });
  ASSERT_NE(saved, process.steps.phases.end());
  EXPECT_EQ(saved->evidence, "1 step in which a model was copied to the host to be saved");
}

// What is saved behind the last batch of an evaluation is none of that.
TEST(Saving, BehindAnEvaluationIsNoneOfThat) {
  SavingLoop loop;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 10; ++i) loop.batch(50 * kUs), loop.forward(), loop.update(), loop.wait();
    for (int i = 0; i < 3; ++i) loop.batch(50 * kUs), loop.forward(), loop.wait();
    loop.copies_from(SavingLoop::kSave);
    loop.sleep(500 * kUs);
  }
  const ProcessTrace process = loop.load().processes[0];
  EXPECT_EQ(steps_of(process.steps, RunPhase::Evaluation), 9);
  std::size_t saved = 0;
  for (const PhaseSpan& phase : process.steps.phases) {
    if (phase.phase != RunPhase::Checkpoint) continue;
    ++saved;
    EXPECT_EQ(phase.evidence, "between two steps; 12 copies to the host to save a model");
    EXPECT_GT(phase.end - phase.begin, 500 * kUs);
  }
  EXPECT_EQ(saved, 2u) << "the last one is behind the last step";
}

// Where they are not known much more is copied than in other steps; names of operations are no lines.
TEST(Saving, IsAPhase) {
  Loop loop;
  for (int i = 0; i < 30; ++i) {
    loop.batch(50 * kUs);
    loop.forward();
    loop.update();
    for (int k = 0; i % 10 == 9 && k < 12; ++k) loop.copy_to_host(4096, MemoryKind::Pageable, false);
    loop.wait();
  }
  const ProcessTrace process = loop.load().processes[0];
  EXPECT_EQ(steps_of(process.steps, RunPhase::Checkpoint), 3);
  EXPECT_EQ(statistics_of(process.steps).counted, 27u);
  Nanos done = process.begin;
  for (const PhaseSpan& phase : process.steps.phases) {
    EXPECT_EQ(phase.begin, done);
    done = phase.end;
  }
  EXPECT_EQ(process.steps.phases[0].phase, RunPhase::StartUp);
}

}  // namespace
}  // namespace gputrace
