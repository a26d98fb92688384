// The text that a loop is sought in: how much of it comes again, and that each run has the number of those like it.
#include "analysis/steps/loop_text.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <string>

namespace gputrace {
namespace {

std::vector<LoopEvent> events_of(const std::vector<u32>& kernels) {
  std::vector<LoopEvent> events;
  events.reserve(kernels.size());
  for (const u32 kernel : kernels) events.push_back({0, 1, loop_symbol(LoopKind::Kernel, kernel), 0});
  return events;
}

double predictability(const std::vector<u32>& kernels) {
  const std::vector<LoopEvent> events = events_of(kernels);
  return LoopText(events).predictability();
}

TEST(LoopText, NothingIsPredictedByWhatComesOnce) {
  std::vector<u32> kernels(1000);
  std::iota(kernels.begin(), kernels.end(), 0u);
  EXPECT_EQ(predictability(kernels), 0);
  std::mt19937 random(1);
  for (u32& each : kernels) each = static_cast<u32>(random() % 100);
  EXPECT_LT(predictability(kernels), 0.6);  // most threes come once, and what does not is followed by this or that
}

TEST(LoopText, TurnsThatAreAlikeAreForeseen) {
  std::vector<u32> kernels;
  for (u32 i = 0; i < 1000; ++i) kernels.push_back(i % 50);
  EXPECT_EQ(predictability(kernels), 1);
  for (u32 i = 0; i < 1000; i += 100) kernels[i + 7] = 200 + i;  // in every second turn something else, once
  EXPECT_NEAR(predictability(kernels), 0.99, 0.01);
}

TEST(LoopText, RunsHaveTheNumbersOfThoseLikeThem) {
  std::mt19937 random(2);
  for (const u32 different : {2u, 40u, 5000u}) {
    std::vector<u32> kernels;
    for (u32 i = 0; i < 20'000; ++i) kernels.push_back(static_cast<u32>(random() % different));
    const std::vector<LoopEvent> events = events_of(kernels);
    const LoopText text(events);
    for (std::size_t length = 1; length <= 3; ++length) {
      std::map<std::vector<u32>, u32> known;  // in the order in which they come
      ASSERT_EQ(text.runs(length).size(), kernels.size() + 1 - length);
      for (std::size_t i = 0; i + length <= kernels.size(); ++i) {
        const auto from = kernels.begin() + static_cast<std::ptrdiff_t>(i);
        const auto number =
            known.try_emplace({from, from + static_cast<std::ptrdiff_t>(length)}, static_cast<u32>(known.size()));
        ASSERT_EQ(text.runs(length)[i], number.first->second) << different << " " << length << " " << i;
      }
      EXPECT_EQ(text.different_runs(length), known.size());
    }
  }
}

}  // namespace
}  // namespace gputrace
