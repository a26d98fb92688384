// Theoretical occupancy, by hand for single cases and against the vendor's published formulas for whole sweeps.
#include "analysis/facts/occupancy.h"

#include <gtest/gtest.h>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#include <climits>
#define GT_HAS_VENDOR_FORMULAS
#endif

namespace gputrace {
namespace {

constexpr DeviceLimits kH100{9, 2048, 32, 65536, 233472, 1024, 32};

TEST(Occupancy, IsLimitedByWhatRunsOutFirst) {
  struct Case {
    KernelDemand demand;
    u64 blocks;
    double ratio;
    OccupancyLimit limit;
  };
  const Case cases[] = {{{256, 32, 0, 0}, 8, 1.0, OccupancyLimit::Warps},
                        {{256, 255, 0, 0}, 1, 8.0 / 64, OccupancyLimit::Registers},
                        {{1024, 32, 0, 100 << 10}, 2, 1.0, OccupancyLimit::Warps},
                        {{1024, 32, 0, 200 << 10}, 1, 0.5, OccupancyLimit::SharedMemory},
                        {{256, 32, 40 << 10, 10 << 10}, 4, 0.5, OccupancyLimit::SharedMemory},
                        {{32, 16, 0, 0}, 32, 0.5, OccupancyLimit::Blocks}};
  for (const Case& each : cases) {
    const auto found = theoretical_occupancy(kH100, each.demand);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->blocks_per_sm, each.blocks);
    EXPECT_EQ(found->ratio, each.ratio);
    EXPECT_EQ(found->limit, each.limit) << occupancy_limit_name(found->limit);
  }
}

TEST(Occupancy, IsNotToldWhereSomethingIsNotKnownOrNothingFits) {
  EXPECT_FALSE(theoretical_occupancy(kH100, {256, -1, 0, 0}));
  EXPECT_FALSE(theoretical_occupancy(kH100, {256, 32, -1, 0}));
  EXPECT_FALSE(theoretical_occupancy(kH100, {0, 32, 0, 0}));
  EXPECT_FALSE(theoretical_occupancy(kH100, {1024, 255, 0, 0}));
  EXPECT_FALSE(theoretical_occupancy(kH100, {32, 16, 0, 233472}));  // with the system's 1 KiB too much
  EXPECT_FALSE(theoretical_occupancy({}, {256, 32, 0, 0}));
}

TEST(Occupancy, WavesAndTheirTail) {
  const auto full = waves_of(132 * 8 * 3, 8, 132);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->waves, 3.0);
  EXPECT_EQ(full->tail, 0.0);
  const auto one_more = waves_of(132 * 8 + 1, 8, 132);
  ASSERT_TRUE(one_more);
  EXPECT_NEAR(one_more->waves, 1.00095, 1e-5);
  EXPECT_NEAR(one_more->tail, 0.49953, 1e-5);  // two waves are paid for
  EXPECT_EQ(waves_of(66, 1, 132)->tail, 0.5);
  EXPECT_FALSE(waves_of(0, 8, 132));
  EXPECT_FALSE(waves_of(100, 0, 132));
}

#ifdef GT_HAS_VENDOR_FORMULAS
struct Chip {
  int major, minor;
  u32 threads, blocks, shared, reserved;
};
// Programming guide, "Technical Specifications per Compute Capability".
constexpr Chip kChips[] = {
    {7, 0, 2048, 32, 96 << 10, 0},      {7, 2, 2048, 32, 96 << 10, 0},      {7, 5, 1024, 16, 64 << 10, 0},
    {8, 0, 2048, 32, 164 << 10, 1024},  {8, 6, 1536, 16, 100 << 10, 1024},  {8, 7, 1536, 16, 164 << 10, 1024},
    {8, 9, 1536, 24, 100 << 10, 1024},  {9, 0, 2048, 32, 228 << 10, 1024},  {10, 0, 2048, 32, 228 << 10, 1024},
    {10, 3, 2048, 32, 228 << 10, 1024}, {11, 0, 1536, 24, 228 << 10, 1024}, {12, 0, 1536, 24, 100 << 10, 1024},
    {12, 1, 1536, 24, 100 << 10, 1024}};

int vendor_blocks(const Chip& chip, const KernelDemand& demand) {
  cudaOccDeviceProp device{};
  device.computeMajor = chip.major, device.computeMinor = chip.minor;
  device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = static_cast<int>(chip.threads);
  device.regsPerBlock = device.regsPerMultiprocessor = 65536;
  device.warpSize = 32, device.numSms = 100;
  device.sharedMemPerBlock = 48 << 10, device.sharedMemPerMultiprocessor = chip.shared;
  device.sharedMemPerBlockOptin = chip.shared - chip.reserved, device.reservedSharedMemPerBlock = chip.reserved;
  cudaOccFuncAttributes function{};
  function.maxThreadsPerBlock = 1024, function.numRegs = demand.registers;
  function.sharedSizeBytes = static_cast<std::size_t>(demand.static_shared);
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, function.maxDynamicSharedSizeBytes = chip.shared;
  cudaOccDeviceState state{};
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;  // the driver widens the carve-out as the launch needs it
  cudaOccResult result{};
  const auto status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                              static_cast<int>(demand.threads), demand.dynamic_shared);
  return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

TEST(Occupancy, EqualsTheVendorsFormulasOnEveryChip) {
  u64 compared = 0;
  for (const Chip& chip : kChips) {
    const DeviceLimits limits{
        static_cast<u32>(chip.major), chip.threads, chip.blocks, 65536, chip.shared, chip.reserved, 32};
    for (u64 threads = 32; threads <= 1024; threads += threads < 128 ? 16 : 96) {
      for (i32 registers = 16; registers <= 255; registers += 7) {
        for (u64 shared = 0; shared <= chip.shared; shared += shared < 8192 ? 1100 : 9000) {
          const KernelDemand demand{threads, registers, static_cast<i32>(shared / 3), shared - shared / 3};
          const auto ours = theoretical_occupancy(limits, demand);
          const int theirs = vendor_blocks(chip, demand);
          ASSERT_GE(theirs, 0);
          ASSERT_EQ(ours ? static_cast<int>(ours->blocks_per_sm) : 0, theirs)
              << chip.major << "." << chip.minor << " threads " << threads << " registers " << registers << " shared "
              << shared;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 100000u);
}
#endif

}  // namespace
}  // namespace gputrace
