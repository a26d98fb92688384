// Steps of a run as bytes: what comes out is what went in, and bytes that are damaged are nothing.
#include <gtest/gtest.h>

#include "analysis/page/kept_steps.h"

namespace gputrace {
namespace {

RunSteps some_steps() {
  RunSteps run;
  run.why_none = "no call was recorded";
  run.origin = 1'000'000'000'000;
  StepFacts facts;
  facts.source = StepSource::Nvtx, facts.confidence = 0.75;
  facts.evidence = "NVTX ranges 'step'", facts.why_none = "a", facts.not_divided = "b", facts.loader = "loader";
  facts.on_device = facts.loader_sampled = true, facts.batches = 7, facts.batch_ns = ~0ull, facts.first_number = 3;
  for (int i = 0; i < 300; ++i) {
    Step step;
    step.begin = i * 1'000'003 - 5, step.end = step.begin + 999'999;
    step.called_from = -i, step.called_to = i;
    step.phase = static_cast<RunPhase>(i % kRunPhases);
    step.counted = i % 2, step.divided = i % 3;
    for (unsigned part = 0; part < kStepCategories; ++part) step.parts[part] = u64{part} << (i % 60);
    step.waited_for_batches_ns = static_cast<u64>(i), step.host_busy_ns = 2 * static_cast<u64>(i);
    facts.steps.push_back(step);
  }
  facts.phases.push_back({RunPhase::WarmUp, -3, 5, "the first"});
  run.processes.push_back({"/some/where.gtrace", facts});
  run.processes.push_back({std::string("b\0c", 3), {}});
  return run;
}

TEST(KeptSteps, AreWhatTheyWere) {
  const RunSteps wanted = some_steps();
  const std::string bytes = packed_steps(wanted);
  const auto found = steps_in(bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(packed_steps(*found), bytes);
  EXPECT_EQ(found->why_none, wanted.why_none);
  EXPECT_EQ(found->origin, wanted.origin);
  ASSERT_EQ(found->processes.size(), 2u);
  EXPECT_EQ(found->processes[1].file, wanted.processes[1].file);
  const StepFacts &ours = found->processes[0].steps, &theirs = wanted.processes[0].steps;
  EXPECT_EQ(ours.source, StepSource::Nvtx);
  EXPECT_EQ(ours.confidence, 0.75);
  EXPECT_EQ(ours.evidence, theirs.evidence);
  EXPECT_EQ(ours.why_none + ours.not_divided + ours.loader, "abloader");
  EXPECT_TRUE(ours.on_device && ours.loader_sampled);
  EXPECT_EQ(ours.batches, 7u);
  EXPECT_EQ(ours.batch_ns, ~0ull);
  EXPECT_EQ(ours.first_number, 3u);
  ASSERT_EQ(ours.steps.size(), 300u);
  for (std::size_t i = 0; i < 300; ++i) {
    const Step &one = ours.steps[i], &other = theirs.steps[i];
    EXPECT_EQ(std::tie(one.begin, one.end, one.called_from, one.called_to, one.phase, one.counted, one.divided,
                       one.parts, one.waited_for_batches_ns, one.host_busy_ns),
              std::tie(other.begin, other.end, other.called_from, other.called_to, other.phase, other.counted,
                       other.divided, other.parts, other.waited_for_batches_ns, other.host_busy_ns));
  }
  ASSERT_EQ(ours.phases.size(), 1u);
  EXPECT_EQ(ours.phases[0].begin, -3);
  EXPECT_EQ(ours.phases[0].evidence, "the first");
  const auto none = steps_in(packed_steps({}));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->origin);
}

TEST(KeptSteps, OfDamageAreNothingOrWithinBounds) {
  const std::string bytes = packed_steps(some_steps());
  EXPECT_FALSE(steps_in(""));
  EXPECT_FALSE(steps_in(bytes + "x"));
  for (std::size_t size = 0; size < bytes.size(); size += 7) EXPECT_FALSE(steps_in(bytes.substr(0, size))) << size;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0xff);
    const auto found = steps_in(flipped);
    if (!found) continue;
    for (const RunSteps::Process& process : found->processes) {
      ASSERT_LE(process.steps.source, StepSource::Inferred);
      for (const Step& step : process.steps.steps) {
        ASSERT_LT(static_cast<unsigned>(step.phase), kRunPhases);
        ASSERT_LE(step.begin, step.end);
        ASSERT_LE(step.called_from, step.called_to);
      }
    }
  }
}

}  // namespace
}  // namespace gputrace
