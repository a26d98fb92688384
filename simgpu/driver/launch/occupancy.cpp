#include "simgpu/driver/launch/occupancy.h"

#include <algorithm>

#include "simgpu/driver/context/device.h"
#include "simgpu/driver/life/call.h"
#include "simgpu/driver/life/knobs.h"

namespace simgpu {

namespace {

constexpr uint32_t kRegisterUnit = 256;  // registers are given to a warp in units of this
constexpr uint32_t kWarpUnit = 4;        // one per scheduler
// Shared memory is given out in units of this many bytes.
uint32_t shared_unit() { return knobs().cc_major >= 8 ? 128 : 256; }

constexpr uint32_t in_units(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

uint32_t compute(const Function& function, uint32_t block_threads, uint32_t dynamic_shared) {
  const auto attribute = [&](int which) {
    return static_cast<uint32_t>(function.attributes[static_cast<size_t>(which)].load(std::memory_order_relaxed));
  };
  const uint32_t warps = (block_threads + limits::kWarp - 1) / limits::kWarp;
  uint32_t blocks = std::min(blocks_per_multiprocessor(), threads_per_multiprocessor() / (warps * limits::kWarp));
  if (const uint32_t registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS); registers > 0) {
    const uint32_t per_warp = in_units(registers * limits::kWarp, kRegisterUnit);
    const uint32_t warps_that_fit = limits::kRegisters / per_warp / kWarpUnit * kWarpUnit;
    blocks = std::min(blocks, warps_that_fit / warps);
  }
  const uint32_t shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) + dynamic_shared;
  if (const uint32_t taken = in_units(shared + reserved_shared_per_block(), shared_unit()); taken > 0) {
    if (shared > shared_per_block_optin()) return 0;
    blocks = std::min(blocks, shared_per_multiprocessor() / taken);
  }
  return blocks;
}

}  // namespace

uint32_t blocks_per_multiprocessor_for(Function& function, uint32_t block_threads, size_t dynamic_shared) {
  if (block_threads == 0 || block_threads > limits::kMaxThreadsPerBlock) return 0;
  if (dynamic_shared > shared_per_multiprocessor()) return 0;
  // Question and answer in one word: threads, shared bytes, blocks + 1. Launches ask the same again and again.
  const auto shared = static_cast<uint32_t>(dynamic_shared);
  const uint64_t question = uint64_t{block_threads} << 48 | uint64_t{shared} << 16;
  const uint64_t cached = function.occupancy_cache.load(std::memory_order_relaxed);
  if ((cached & ~uint64_t{0xffff}) == question && (cached & 0xffff) != 0)
    return static_cast<uint32_t>(cached & 0xffff) - 1;
  const uint32_t blocks = compute(function, block_threads, shared);
  function.occupancy_cache.store(question | (blocks + 1), std::memory_order_relaxed);
  return blocks;
}

namespace {

Function* function_for(Call& call, CUfunction handle) {
  return handle == nullptr ? nullptr : function_from_handle(handle, call.context());
}

uint32_t thread_limit(const Function& function) {
  const int limit = function.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK].load();
  return std::min(static_cast<uint32_t>(limit), limits::kMaxThreadsPerBlock);
}

CUresult max_active_blocks(Call& call, int* blocks, CUfunction handle, int block_size, size_t shared) {
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  Function* function = function_for(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto threads = static_cast<uint32_t>(block_size);
  *blocks = threads > thread_limit(*function)
                ? 0
                : static_cast<int>(blocks_per_multiprocessor_for(*function, threads, shared));
  return CUDA_SUCCESS;
}

// The block size that keeps most threads on a multiprocessor; the largest such.
CUresult max_potential(Call& call, int* min_grid, int* block_size, CUfunction handle, CUoccupancyB2DSize shared_of,
                       size_t shared, int limit) {
  if (min_grid == nullptr || block_size == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  Function* function = function_for(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t highest = thread_limit(*function);
  if (limit > 0) highest = std::min(highest, static_cast<uint32_t>(limit));
  uint32_t best_threads = 0;
  uint32_t best_size = 0;
  uint32_t best_blocks = 0;
  for (uint32_t size = in_units(highest, limits::kWarp); size > 0; size -= limits::kWarp) {
    const uint32_t tried = std::min(size, highest);
    const size_t bytes = shared_of != nullptr ? shared_of(static_cast<int>(tried)) : shared;
    const uint32_t blocks = blocks_per_multiprocessor_for(*function, tried, bytes);
    if (blocks * tried <= best_threads) continue;
    best_threads = blocks * tried;
    best_size = tried;
    best_blocks = blocks;
  }
  *block_size = static_cast<int>(best_size);
  *min_grid = static_cast<int>(best_blocks) * knobs().sms;
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace simgpu

using namespace simgpu;

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        (int* blocks, CUfunction function, int block_size, size_t shared), (blocks, function, block_size, shared)) {
  return max_active_blocks(call, blocks, function, block_size, shared);
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        (int* blocks, CUfunction function, int block_size, size_t shared, unsigned flags),
        (blocks, function, block_size, shared, flags)) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return max_active_blocks(call, blocks, function, block_size, shared);
}

SIM_API(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize",
        (int* min_grid, int* block_size, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit),
        (min_grid, block_size, function, shared_of, shared, limit)) {
  return max_potential(call, min_grid, block_size, function, shared_of, shared, limit);
}

SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, "cuOccupancyMaxPotentialBlockSizeWithFlags",
        (int* min_grid, int* block_size, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit,
         unsigned flags),
        (min_grid, block_size, function, shared_of, shared, limit, flags)) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return max_potential(call, min_grid, block_size, function, shared_of, shared, limit);
}

SIM_API(cuOccupancyAvailableDynamicSMemPerBlock, "cuOccupancyAvailableDynamicSMemPerBlock",
        (size_t * shared, CUfunction handle, int blocks, int block_size), (shared, handle, blocks, block_size)) {
  if (shared == nullptr || blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  Function* function = function_for(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto wanted = static_cast<uint32_t>(blocks);
  if (blocks_per_multiprocessor_for(*function, static_cast<uint32_t>(block_size), 0) < wanted) {
    *shared = 0;
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint32_t own = static_cast<uint32_t>(function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES].load());
  const uint32_t share = shared_per_multiprocessor() / wanted / shared_unit() * shared_unit();
  const uint32_t taken = reserved_shared_per_block() + own;
  *shared = std::min(share > taken ? share - taken : 0, shared_per_block_optin() - own);
  return CUDA_SUCCESS;
}

namespace {

uint32_t cluster_blocks(const CUlaunchConfig& config, const Function& function) {
  for (unsigned i = 0; i < config.numAttrs && config.attrs != nullptr; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dim = config.attrs[i].value.clusterDim;
    return dim.x * dim.y * dim.z;
  }
  const uint32_t* required = function.code->required_cluster;
  return std::max(1u, required[0] * required[1] * required[2]);
}

}  // namespace

SIM_API(cuOccupancyMaxPotentialClusterSize, "cuOccupancyMaxPotentialClusterSize",
        (int* size, CUfunction handle, const CUlaunchConfig* config), (size, handle, config)) {
  if (size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  Function* function = function_for(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool beyond = function->attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED].load() != 0;
  *size = static_cast<int>(!has_clusters() ? 1 : beyond ? limits::kMaxCluster : limits::kMaxClusterPortable);
  return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",
        (int* clusters, CUfunction handle, const CUlaunchConfig* config), (clusters, handle, config)) {
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.context() == nullptr) return call.context_error();
  Function* function = function_for(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const uint32_t threads = config->blockDimX * config->blockDimY * config->blockDimZ;
  const uint32_t blocks = cluster_blocks(*config, *function);
  if (blocks == 0 || blocks > limits::kMaxCluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const uint32_t resident = blocks_per_multiprocessor_for(*function, threads, config->sharedMemBytes);
  *clusters = static_cast<int>(resident * static_cast<uint32_t>(knobs().sms) / blocks);
  return CUDA_SUCCESS;
}
