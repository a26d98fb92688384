// For how long the host was busy in a step: not while it waited for a device.
#include <gtest/gtest.h>

#include "analysis/steps/step_parts.h"

namespace gputrace {
namespace {

constexpr Nanos kMicro = 1000;

Step step_of(Nanos begin, Nanos end) {
  Step step;
  step.begin = begin, step.end = end;
  return step;
}

TEST(HostBusy, IsAllButTheWaits) {
  LoopLog log;
  log.add(LoopKind::Kernel, 1, 0, 5 * kMicro, 7);
  log.add(LoopKind::Wait, 0, 100 * kMicro, 130 * kMicro, 7);    // 30 us
  log.add(LoopKind::Wait, 0, 120 * kMicro, 200 * kMicro, 8);    // of a thread that launches nothing
  log.add(LoopKind::Kernel, 1, 300 * kMicro, 360 * kMicro, 7);  // 60 us: for room in the queue
  log.add(LoopKind::Kernel, 1, 400 * kMicro, 440 * kMicro, 7);  // 40 us: its own
  log.add(LoopKind::Kernel, 1, 500 * kMicro, 501 * kMicro, 9);
  log.add(LoopKind::ToHost, 1, 900 * kMicro, 1100 * kMicro, 7);  // 100 us in each of two steps
  log.add(LoopKind::Wait, 1, 950 * kMicro, 1150 * kMicro, 9);    // 50 us more than that
  StepFacts facts;
  facts.steps = {step_of(0, 1000 * kMicro), step_of(1000 * kMicro, 1600 * kMicro),
                 step_of(1600 * kMicro, 1700 * kMicro)};
  measure_host(log, facts);
  EXPECT_EQ(facts.steps[0].host_busy_ns, 1000u * kMicro - 30 * kMicro - 60 * kMicro - 100 * kMicro);
  EXPECT_EQ(facts.steps[1].host_busy_ns, 600u * kMicro - 150 * kMicro);
  EXPECT_EQ(facts.steps[2].host_busy_ns, 100u * kMicro);
}

TEST(HostBusy, OfAStepOnTheDeviceIsTheTimeThatGaveItItsWork) {
  LoopLog log;
  log.add(LoopKind::Kernel, 1, 0, 5 * kMicro, 7);
  log.add(LoopKind::Wait, 0, 10 * kMicro, 30 * kMicro, 7);
  StepFacts facts;
  facts.steps = {step_of(5000 * kMicro, 9000 * kMicro)};
  facts.steps[0].called_from = 0, facts.steps[0].called_to = 100 * kMicro;
  measure_host(log, facts);
  EXPECT_EQ(facts.steps[0].host_busy_ns, 80u * kMicro);
}

TEST(HostBusy, IsNotKnownWhereTheLogEnds) {
  LoopLog log;
  log.add(LoopKind::Kernel, 1, 0, 5 * kMicro, 7);
  log.add(LoopKind::Kernel, 1, 150 * kMicro, 155 * kMicro, 7);
  log.events_left_out = 1;
  StepFacts facts;
  facts.steps = {step_of(0, 100 * kMicro), step_of(100 * kMicro, 200 * kMicro)};
  measure_host(log, facts);
  EXPECT_EQ(facts.steps[0].host_busy_ns, 100u * kMicro);
  EXPECT_EQ(facts.steps[1].host_busy_ns, 0u);
}

}  // namespace
}  // namespace gputrace
