// Loops whose batches another thread asks for, ahead, and hands over: what that thread waits for is the loop's wait only where the loop waits, too.
#include <gtest/gtest.h>

#include "analysis/report.h"
#include "analysis/run/input_ops.h"
#include "analysis/steps/find_steps.h"
#include "tests/unit/finding_lookup.h"
#include "tests/unit/steps/framework_loop.h"

namespace gputrace {
namespace {

using namespace test;

constexpr u32 kAheadFrames = 1u << 31, kTrains = kAheadFrames, kGets = kAheadFrames + 1, kAugments = kAheadFrames + 2,
              kLoads = kAheadFrames + 6;
constexpr Nanos kTakes = 3 * kMs;
constexpr u64 kLoopTurns = 40;

class LoadingAhead : public Loop {
 public:
  LoadingAhead() {
    trace().frame(kTrains, 0, "<module>", "/home/me/train.py", 14);
    trace().frame(kGets, kTrains, "Queue.get", "/usr/lib/python3.11/queue.py", 180);
    trace().frame(kAugments, kTrains, "augment", "/home/me/train.py", 4);
    trace().frame(kAheadFrames + 3, 0, "Background.run", "/home/me/background.py", 9);
    trace().frame(kAheadFrames + 4, kAheadFrames + 3, "_SingleProcessDataLoaderIter._next_data",
                  "/x/site-packages/torch/utils/data/dataloader.py", 790);
    trace().frame(kAheadFrames + 5, kAheadFrames + 4, "_MapDatasetFetcher.fetch",
                  "/x/site-packages/torch/utils/data/_utils/fetch.py", 54);
    trace().frame(kLoads, kAheadFrames + 5, "Pictures.__getitem__", "/home/me/data.py", 12);
    hand_over(), hand_over();  // both are there
  }
  // The loop is in `frame` while the other thread asks its loader; both take as long. `copies`: the other one copies the batch, too.
  void turn(u32 frame, WaitFor waits, bool copies) {
    const Nanos begin = now();
    hand_over();
    batch(kTakes);
    if (copies) copy_to_device(4096, MemoryKind::Pageable, false);
    hand_over();
    look_at(main(), frame, begin + kMs, waits);
    look_at(other(), kLoads, begin + kMs, WaitFor::Sleep, copies ? 0 : 311);
    if (!copies) copy_to_device(4096, MemoryKind::Pageable, false);
    forward(), backward(), update();
    fetch();
  }
};

LoadedRun loaded_ahead(u32 frame, WaitFor waits, bool copies = false) {
  LoadingAhead loop;
  for (u64 i = 0; i < kLoopTurns; ++i) loop.turn(frame, waits, copies);
  return loop.load();
}

u64 trained_steps(const StepFacts& facts) {
  return static_cast<u64>(std::count_if(facts.steps.begin(), facts.steps.end(),
                                        [](const Step& step) { return step.phase != RunPhase::Evaluation; }));
}

TEST(LoadedAhead, IsWaitedForWhereTheLoopWaits) {
  const LoadedRun run = loaded_ahead(kGets, WaitFor::Lock);
  const StepFacts& facts = run.processes[0].steps;
  EXPECT_EQ(facts.loader, "PyTorch's DataLoader");
  EXPECT_EQ(facts.steps.size(), kLoopTurns);
  EXPECT_EQ(trained_steps(facts), kLoopTurns);
  for (std::size_t i = 1; i < facts.steps.size(); ++i)
    EXPECT_NEAR(static_cast<double>(facts.steps[i].waited_for_batches_ns), static_cast<double>(kTakes), 0.05 * kTakes);
  const auto findings = find_findings(run);
  const Finding* const finding = find(findings, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->site, "data.py:12 Pictures.__getitem__");
  EXPECT_NE(finding->text.find("100 % of what threads that load ahead do meanwhile is data.py:12"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->text.find("they sleep 100 % of the time that batches take"), std::string::npos) << finding->text;
  EXPECT_NE(finding->fix.find("DataLoader(num_workers=4 or more"), std::string::npos) << finding->fix;
  const InputOps ops = input_ops_of(run);
  ASSERT_FALSE(ops.ops.empty());
  EXPECT_TRUE(ops.ops[0].ahead) << "not in the thread that trains";
}

TEST(LoadedAhead, IsWaitedForAsWellWhereTheOtherThreadCopies) {
  const LoadedRun run = loaded_ahead(kGets, WaitFor::Lock, true);
  EXPECT_EQ(run.processes[0].steps.loader, "PyTorch's DataLoader");
  const auto findings = find_findings(run);
  EXPECT_NE(find(findings, "input-bound"), nullptr);
}

// There are batches in between: the loop's own sleep, or work, is what the device waits for.
TEST(LoadedAhead, IsNotWaitedForWhereTheLoopDoesSomethingElse) {
  for (const WaitFor waits : {WaitFor::Sleep, WaitFor::File, WaitFor{}}) {
    for (const bool copies : {false, true}) {
      const LoadedRun run = loaded_ahead(kAugments, waits, copies);
      EXPECT_EQ(run.processes[0].steps.loader, "PyTorch's DataLoader");
      EXPECT_EQ(run.processes[0].steps.batches, 0u);
      const Report report = make_report(run, {});
      const Row& row = report.table("input")->rows.back();
      EXPECT_EQ(row[1], Value(i64{0}));
      EXPECT_EQ(std::get<std::string>(row[3]),
                "another thread asks PyTorch's DataLoader ahead, and no looks found the loop waiting for that");
      EXPECT_EQ(trained_steps(run.processes[0].steps), kLoopTurns);
      const auto findings = find_findings(run);
      EXPECT_EQ(find(findings, "input-bound"), nullptr);
      const Finding* const gaps = find(findings, "idle-gaps");
      ASSERT_NE(gaps, nullptr);
      if (!copies) {  // else the gaps are the copying thread's: docs/LIMITS.md
        EXPECT_EQ(gaps->site, "train.py:4 augment");
      }
    }
  }
}

}  // namespace
}  // namespace gputrace
