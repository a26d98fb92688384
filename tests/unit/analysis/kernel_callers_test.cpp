// Who had kernels run: sums by kernel and origin, and how much of them used tensor cores.
#include "analysis/kernels/kernel_callers.h"

#include <gtest/gtest.h>

#include <map>

#include "analysis/facts/kernel_origins.h"

namespace gputrace {
namespace {

using Pair = std::pair<u32, u32>;

TEST(KernelOrigins, SumEachPairOfKernelAndOrigin) {
  KernelOrigins origins;
  std::map<Pair, std::pair<u64, u64>> wanted;
  for (u32 i = 0; i < 50'000; ++i) {  // 1,200 pairs: the table grows several times
    const Pair pair{i % 400, 1 + i * 7 % 30};
    origins.add(pair.first, pair.second, i);
    ++wanted[pair].first;
    wanted[pair].second += i;
  }
  std::map<Pair, std::pair<u64, u64>> found;
  for (const KernelOrigin& each : origins.take())
    EXPECT_TRUE(found.try_emplace({each.kernel, each.origin}, each.executions, each.device_ns).second);
  EXPECT_EQ(found, wanted);
}

TEST(KernelOrigins, KeepWhatTheyHaveOnceTheyAreFull) {
  KernelOrigins origins;
  for (u32 i = 0; i < KernelOrigins::kMost; ++i) origins.add(i, 1, 1);
  origins.add(7, 2, 1);  // one more pair
  origins.add(7, 1, 5);
  const std::vector<KernelOrigin> kept = origins.take();
  ASSERT_EQ(kept.size(), KernelOrigins::kMost);
  EXPECT_EQ(kept[7].device_ns, 6u);
  EXPECT_EQ(kept[7].executions, 2u);
}

// What has no operation and no line is in no pair; a few launches that have one do not stand for it.
TEST(KernelCallers, StandForMostOfAKernelsTimeOrAreNotTold) {
  ProcessTrace process;
  process.kernels.resize(2);
  for (KernelLaunches& kernel : process.kernels) kernel.times.durations.add(100);
  process.lines.frames.resize(3);
  process.lines.frames[1].file = "/home/me/train.py", process.lines.frames[1].line = 7;
  process.lines.frames[1].function = "step";
  process.lines.frames[2].function = "aten::mm";
  process.lines.origins = {{}, {1, 2}};
  process.lines.kernels = {{0, 1, 1, 49}, {1, 1, 1, 51}};
  const auto callers = kernel_callers(process, FileNames(process));
  EXPECT_EQ(callers[0].site(), "");
  EXPECT_EQ(callers[0].operation(), "");
  EXPECT_EQ(callers[1].site(), "train.py:7 step");
  EXPECT_EQ(callers[1].operation(), "aten::mm");
  KernelCallers both = callers[0];
  both.add(callers[1]);
  EXPECT_EQ(both.site(), "train.py:7 step") << "100 of 200";
}

TEST(TensorCoreShare, IsAbsentWhereCodeIsNotKnown) {
  const auto ratio = [](u64 kernel, u64 tensor, u64 not_known) {
    return TensorCoreShare{kernel, tensor, not_known}.ratio();
  };
  EXPECT_EQ(ratio(1'000, 250, 0), Value(0.25));
  EXPECT_EQ(ratio(1'000, 250, 10), Value(0.25));
  EXPECT_EQ(ratio(1'000, 250, 11), Value());
  EXPECT_EQ(ratio(0, 0, 0), Value());
}

}  // namespace
}  // namespace gputrace
