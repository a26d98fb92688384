// The simulated machine's devices and their numbers.
#pragma once

#include "simgpu/driver/life/cuda_api.h"
#include "simgpu/driver/life/state.h"

namespace simgpu {

void create_devices();  // once, by cuInit

// Numbers that the model computes with, beside cuDeviceGetAttribute's.
namespace limits {
inline constexpr uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
inline constexpr uint32_t kMaxGrid[3] = {2147483647, 65535, 65535};
inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kRegisters = 65536;  // per multiprocessor, and per block
inline constexpr uint32_t kSharedPerBlock = 48 * 1024;
inline constexpr uint32_t kMaxClusterPortable = 8;
inline constexpr uint32_t kMaxCluster = 16;
inline constexpr size_t kTextureAlignment = 512;
inline constexpr size_t kPitchAlignment = 512;
}  // namespace limits

// What depends on the capability.
uint32_t shared_per_multiprocessor();
uint32_t shared_per_block_optin();
uint32_t reserved_shared_per_block();
uint32_t threads_per_multiprocessor();
uint32_t blocks_per_multiprocessor();
bool has_clusters();
uint32_t capability();  // 90 for 9.0

// CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE for an attribute that does not exist.
CUresult device_attribute(const Device& device, CUdevice_attribute attribute, int* value);

}  // namespace simgpu
