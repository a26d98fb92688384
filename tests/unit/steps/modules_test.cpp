// Steps by the executions of XLA's modules, from ranges made by hand: a name, a begin and an end in us, on one thread.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/steps/step_marks.h"

namespace gputrace::test {
namespace {

struct Ranges : LoopLog {
  void add(const std::string& name, Nanos begin, Nanos end, u32 thread = 0) {
    auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) known = names.insert(names.end(), name);
    ranges.push_back({begin * 1000, end * 1000, static_cast<u32>(known - names.begin()), thread});
  }
  // Each execution is another program.
  void module(const std::string& name, Nanos begin, Nanos end) {
    add("XlaModule:#hlo_module=" + name + ",program_id=" + std::to_string(ranges.size()) + "#", begin, end);
  }
};

// A small module before each; what the compiler tries takes more than both, and is none of the program's.
TEST(StepsOfModules, AreTheExecutionsOfTheOneThatTakesMost) {
  Ranges log;
  for (Nanos i = 0; i < 8; ++i) {
    const Nanos at = 100 + 50 * i + i * i;
    log.module("jit_ones", at - 4, at - 3);
    log.add("XlaCompile:#module=jit_step#", at - 2, at - 1);
    log.module("jit_step", at, at + 5);
  }
  log.add("XlaCompile:#module=jit_other#", 1000, 2000);
  for (Nanos i = 0; i < 9; ++i) log.module("gemm_fusion_dot.1", 1001 + 100 * i, 1090 + 100 * i);
  log.module("jit_step", 500, 0);  // its end was lost
  const auto steps = steps_of_modules(log);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->source, StepSource::Inferred);
  EXPECT_EQ(steps->confidence, 0.6);
  EXPECT_EQ(steps->evidence, "8 executions of XLA's module jit_step, which takes most of the modules' time");
  ASSERT_EQ(steps->steps.size(), 8u);
  for (Nanos i = 0; i < 8; ++i)
    EXPECT_EQ(steps->steps[static_cast<std::size_t>(i)].begin, (100 + 50 * i + i * i) * 1000);
  EXPECT_EQ(steps->steps[0].length(), 51'000u);
  EXPECT_EQ(steps->steps[7].length(), 5000u);
}

TEST(StepsOfModules, AreNotTold) {
  Ranges few, start, none;
  for (Nanos i = 0; i < 4; ++i) few.module("jit_step", 100 * i, 100 * i + 50);
  EXPECT_FALSE(steps_of_modules(few)) << "four are no loop";
  for (Nanos i = 0; i < 9; ++i) start.module("jit_normal", 10 * i, 10 * i + 9);
  for (Nanos i = 0; i < 9; ++i) start.module("jit_add" + std::to_string(i), 100 + 100 * i, 101 + 100 * i);
  EXPECT_FALSE(steps_of_modules(start)) << "initial values, a tenth of the run";
  for (Nanos i = 0; i < 9; ++i) none.add("Thunk:#hlo_op=fusion#", 10 * i, 10 * i + 9);
  EXPECT_FALSE(steps_of_modules(none));
}

}  // namespace
}  // namespace gputrace::test
