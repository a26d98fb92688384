// Words for tests that build graphs.
#pragma once

#include <map>
#include <vector>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {

inline const Variables kKernelTimes{{"SIMGPU_KERNEL_TIME", "plain=100us,touch=300us,bounded=50us"}};

inline CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, unsigned grid = 1, unsigned block = 32,
                                             void** args = nullptr) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = grid;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = block;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = args;
  return params;
}

inline CUgraph new_graph() {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  return graph;
}

inline CUgraphNode add_kernel(CUgraph graph, const std::vector<CUgraphNode>& after, CUfunction function,
                              unsigned grid = 1, void** args = nullptr) {
  CUgraphNode node = nullptr;
  const CUDA_KERNEL_NODE_PARAMS params = kernel_params(function, grid, 32, args);
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params), CUDA_SUCCESS);
  return node;
}

inline CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, flags), CUDA_SUCCESS);
  return exec;
}

inline uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

inline std::map<uint64_t, Json> by_node(const std::vector<Json>& lines) {
  std::map<uint64_t, Json> found;
  for (const Json& line : lines) found[line["graph"]["node"].get<uint64_t>()] = line;
  return found;
}

}  // namespace simgpu
