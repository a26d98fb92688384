#include "analysis/occupancy.h"

#include <algorithm>

namespace gputrace {
namespace {

constexpr u64 kRegisterUnit = 256;  // registers are given out to a warp in this many (capability 3.0 and up)
constexpr u64 kSubPartitions = 4;   // each with a quarter of the registers (capability 5.0 and up, but for 6.0 with 2)

u64 shared_unit(u32 capability_major) { return capability_major >= 8 ? 128 : 256; }

}  // namespace

std::optional<double> theoretical_occupancy(const DeviceLimits& device, const KernelDemand& kernel) {
  if (!device.max_threads_per_sm || !device.max_blocks_per_sm || !device.registers_per_sm ||
      !device.shared_bytes_per_sm)
    return {};
  if (!device.warp_size || kernel.threads == 0 || kernel.threads > device.max_threads_per_sm || kernel.registers < 0 ||
      kernel.static_shared < 0) {
    return {};
  }
  const u64 warps_per_sm = device.max_threads_per_sm / device.warp_size;
  const u64 warps = (kernel.threads + device.warp_size - 1) / device.warp_size;
  u64 blocks = std::min<u64>(device.max_blocks_per_sm, warps_per_sm / warps);
  if (kernel.registers > 0) {
    const u64 per_warp = align_up(static_cast<u64>(kernel.registers) * device.warp_size, kRegisterUnit);
    const u64 warps_by_registers = device.registers_per_sm / kSubPartitions / per_warp * kSubPartitions;
    blocks = std::min(blocks, warps_by_registers / warps);
  }
  const u64 shared =
      align_up(static_cast<u64>(kernel.static_shared) + kernel.dynamic_shared + device.reserved_shared_bytes,
               shared_unit(device.capability_major));
  if (shared > 0) blocks = std::min(blocks, device.shared_bytes_per_sm / shared);
  if (blocks == 0) return {};
  return static_cast<double>(blocks * warps) / static_cast<double>(warps_per_sm);
}

}  // namespace gputrace
