// For how long the host was busy in a step: not while it waited for a device.
#include <gtest/gtest.h>

#include "analysis/steps/step_parts.h"
#include "tests/unit/device_builder.h"

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

// A device that somebody else uses begins late what was launched in time: that is no launching in a step either, as it is none in the causes of idle time.
TEST(StepParts, WhatADeviceBeginsLateIsNoLaunching) {
  test::DeviceBuilder trace;
  const auto main = trace.thread(100);
  trace.name_function(0xf1, "step", 0xa0);
  trace.info("option.collect", "api,device,nvtx,ops");
  trace.reading(500);
  const u64 name = trace.text("step"), optimizer = trace.text("Optimizer.step#SGD.step");
  trace.add<StackFrame>(test::TraceBuilder::definitions(), "", 2, 2, [&](auto& r) {
    r.function = optimizer, r.id = 1, r.language = static_cast<u32>(SourceLanguage::Operation);
  });
  u32 correlation = 0;
  const auto run = [&](Nanos at, Nanos late) {
    trace.launch(main, 0xf1, at, at + 4 * kMicro);
    trace.key(100, ++correlation, at + 500, at + 3500, 20'000'000);
    trace.kernel(correlation, name, at + 4 * kMicro + late, at + 6 * kMicro + late, 20'000'000);
  };
  for (Nanos i = 0; i < 8; ++i) {
    const Nanos at = 10 * kMicro + i * 1000 * kMicro;
    for (Nanos k = 0; k < 10; ++k) run(at + k * 20 * kMicro, kMicro);
    run(at + 250 * kMicro, 300 * kMicro);
    trace.add<Operation>(main, "", at + 240 * kMicro, at + 260 * kMicro,
                         [](auto& r) { r.frame = 1, r.sequence = ~u64{0}; });
  }
  trace.reading(30'000'000);
  const ProcessTrace process = trace.load();
  ASSERT_GE(process.steps.steps.size(), 6u);
  const Step& step = process.steps.steps[4];
  ASSERT_TRUE(step.divided);
  const auto part = [&](StepCategory what) { return static_cast<double>(step.parts[static_cast<unsigned>(what)]); };
  EXPECT_NEAR(part(StepCategory::Other), 290 * kMicro, 3 * kMicro);
  EXPECT_LT(part(StepCategory::Launch), 100 * kMicro);
  const IdleSum& unknown = process.device.devices.front().causes[static_cast<unsigned>(IdleCause::Unknown)];
  EXPECT_NEAR(static_cast<double>(unknown.total_ns), 8 * 290 * kMicro, 8 * 3 * kMicro);
}

}  // namespace
}  // namespace gputrace
