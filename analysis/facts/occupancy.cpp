#include "analysis/facts/occupancy.h"

#include <algorithm>
#include <cmath>

namespace gputrace {
namespace {

constexpr u64 kRegisterUnit = 256;  // registers are given out to a warp in this many (capability 3.0 and up)
constexpr u64 kSubPartitions = 4;   // each with a quarter of the registers (capability 5.0 and up, but for 6.0 with 2)

u64 shared_unit(u32 capability_major) { return capability_major >= 8 ? 128 : 256; }

bool is_known(const DeviceLimits& device) {
  return device.max_threads_per_sm && device.max_blocks_per_sm && device.registers_per_sm &&
         device.shared_bytes_per_sm && device.warp_size;
}

// 0: not even one block.
u64 blocks_by_registers(const DeviceLimits& device, u64 registers, u64 warps) {
  const u64 per_warp = align_up(registers * device.warp_size, kRegisterUnit);
  if (align_up(warps, kSubPartitions) * per_warp > device.registers_per_sm) return 0;  // as the hardware checks it
  return device.registers_per_sm / kSubPartitions / per_warp * kSubPartitions / warps;
}

}  // namespace

const char* occupancy_limit_name(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::Warps:
      return "warps";
    case OccupancyLimit::Blocks:
      return "blocks";
    case OccupancyLimit::Registers:
      return "registers";
    case OccupancyLimit::SharedMemory:
      return "shared memory";
  }
  return "";
}

std::optional<Occupancy> theoretical_occupancy(const DeviceLimits& device, const KernelDemand& kernel) {
  if (!is_known(device) || kernel.threads == 0 || kernel.threads > device.max_threads_per_sm || kernel.registers < 0 ||
      kernel.static_shared < 0) {
    return {};
  }
  const u64 warps_per_sm = device.max_threads_per_sm / device.warp_size;
  const u64 warps = (kernel.threads + device.warp_size - 1) / device.warp_size;
  Occupancy best{warps_per_sm / warps, 0, OccupancyLimit::Warps};
  const auto at_most = [&best](u64 blocks, OccupancyLimit limit) {
    if (blocks < best.blocks_per_sm) best.blocks_per_sm = blocks, best.limit = limit;
  };
  at_most(device.max_blocks_per_sm, OccupancyLimit::Blocks);
  if (kernel.registers > 0)
    at_most(blocks_by_registers(device, static_cast<u64>(kernel.registers), warps), OccupancyLimit::Registers);
  const u64 shared =
      align_up(static_cast<u64>(kernel.static_shared) + kernel.dynamic_shared + device.reserved_shared_bytes,
               shared_unit(device.capability_major));
  if (shared > 0) at_most(device.shared_bytes_per_sm / shared, OccupancyLimit::SharedMemory);
  if (best.blocks_per_sm == 0) return {};
  best.ratio = static_cast<double>(best.blocks_per_sm * warps) / static_cast<double>(warps_per_sm);
  return best;
}

std::optional<Waves> waves_of(u64 grid_blocks, u64 blocks_per_sm, u64 sms) {
  if (grid_blocks == 0 || blocks_per_sm == 0 || sms == 0) return {};
  const double places = static_cast<double>(blocks_per_sm) * static_cast<double>(sms);
  const double waves = static_cast<double>(grid_blocks) / places;
  const double whole = std::ceil(waves);
  return Waves{waves, (whole - waves) / whole};
}

}  // namespace gputrace
