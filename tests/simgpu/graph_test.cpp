// Graphs that a program builds: structure, parameters, order of replay, update, clones and children.
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "tests/simgpu/graph_fixture.h"

namespace simgpu {
namespace {

TEST(Graph, ReplaysADiamond) {
  static uint64_t nodes[4];
  static uint64_t exec_number;
  const int file = memfd_create("diamond", 0);
  const ChildEnd end = run_child(kKernelTimes, [&] {
    Loaded loaded;
    CUdeviceptr data = 4096;
    unsigned count = 7;
    void* args[] = {&data, &count};
    CUgraph graph = new_graph();
    CUgraphNode a = add_kernel(graph, {}, loaded.function("plain"));
    CUgraphNode b = add_kernel(graph, {a}, loaded.function("touch"), 2, args);
    CUgraphNode c = add_kernel(graph, {a}, loaded.function("bounded"), 3);
    CUgraphNode d = add_kernel(graph, {b, c}, loaded.function("plain"), 4);
    size_t edges = 0, all = 0, roots = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &all), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphGetRootNodes(graph, nullptr, &roots), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges), CUDA_SUCCESS);
    EXPECT_EQ(all, 4u);
    EXPECT_EQ(roots, 1u);
    EXPECT_EQ(edges, 4u);
    CUgraphExec exec = instantiate(graph);
    CUstream stream = new_stream();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    const uint64_t numbers[5] = {number(a), number(b), number(c), number(d), number(exec)};
    EXPECT_EQ(write(file, numbers, sizeof numbers), static_cast<ssize_t>(sizeof numbers));
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  });
  uint64_t numbers[5] = {};
  EXPECT_EQ(pread(file, numbers, sizeof numbers, 0), static_cast<ssize_t>(sizeof numbers));
  close(file);
  std::copy(numbers, numbers + 4, nodes);
  exec_number = numbers[4];
  const auto launches = end.lines("graph_launch");
  const auto kernels = end.lines("kernel");
  ASSERT_EQ(launches.size(), 3u);
  ASSERT_EQ(kernels.size(), 12u);
  for (size_t i = 0; i < 3; ++i) {
    const Json& launch = launches[i];
    EXPECT_EQ(launch["exec"], exec_number);
    EXPECT_EQ(launch["nodes"], 4);
    std::vector<Json> own;
    std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(own),
                 [&](const Json& k) { return k["graph"]["launch"] == launch["seq"]; });
    ASSERT_EQ(own.size(), 4u);
    auto at = by_node(own);
    EXPECT_EQ(at[nodes[0]]["symbol"], "plain");
    EXPECT_EQ(at[nodes[1]]["call"], "cuGraphLaunch");
    EXPECT_EQ(end_of(at[nodes[0]]) - start_of(at[nodes[0]]), 100'000u);
    EXPECT_EQ(start_of(at[nodes[1]]), end_of(at[nodes[0]]));
    EXPECT_EQ(start_of(at[nodes[2]]), end_of(at[nodes[0]]));
    EXPECT_EQ(start_of(at[nodes[3]]), end_of(at[nodes[1]]));  // 300 us against 50
    EXPECT_EQ(start_of(launch), start_of(at[nodes[0]]));
    EXPECT_EQ(end_of(launch) - start_of(launch), 500'000u);
    if (i > 0) {
      EXPECT_EQ(start_of(launch), end_of(launches[i - 1]));  // stream order
    }
  }
}

TEST(Graph, NodesTellTheirParameters) {
  run_child({}, [] {
    Loaded loaded;
    CUgraph graph = new_graph();
    CUdeviceptr data = 0x1234;
    unsigned count = 99;
    void* args[] = {&data, &count};
    CUgraphNode node = add_kernel(graph, {}, loaded.function("touch"), 5, args);
    data = 1;
    count = 1;  // values are the node's own
    CUDA_KERNEL_NODE_PARAMS answer{};
    EXPECT_EQ(cuGraphKernelNodeGetParams(node, &answer), CUDA_SUCCESS);
    EXPECT_EQ(answer.func, loaded.function("touch"));
    EXPECT_EQ(answer.gridDimX, 5u);
    ASSERT_NE(answer.kernelParams, nullptr);
    EXPECT_EQ(*static_cast<CUdeviceptr*>(answer.kernelParams[0]), 0x1234u);
    EXPECT_EQ(*static_cast<unsigned*>(answer.kernelParams[1]), 99u);
    answer.gridDimX = 6;
    EXPECT_EQ(cuGraphKernelNodeSetParams(node, &answer), CUDA_SUCCESS);
    answer.blockDimX = 4096;
    EXPECT_EQ(cuGraphKernelNodeSetParams(node, &answer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphKernelNodeGetParams(node, &answer), CUDA_SUCCESS);
    EXPECT_EQ(answer.gridDimX, 6u);
    EXPECT_EQ(answer.blockDimX, 32u);
    CUgraphNodeType type{};
    EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);

    CUkernelNodeAttrValue value{};
    value.priority = -3;
    EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
    value.priority = 0;
    EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
    EXPECT_EQ(value.priority, -3);
    CUDA_HOST_NODE_PARAMS host{};
    EXPECT_EQ(cuGraphHostNodeGetParams(node, &host), CUDA_ERROR_INVALID_VALUE);  // another kind
  });
}

TEST(Graph, EdgesAreChecked) {
  run_child({}, [] {
    Loaded loaded;
    CUgraph graph = new_graph();
    CUgraphNode a = nullptr, b = nullptr, c = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&a, graph, nullptr, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddEmptyNode(&b, graph, &a, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddEmptyNode(&c, graph, nullptr, 0), CUDA_SUCCESS);
    const CUgraphNode twice[] = {a, a};
    CUgraphNode none = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&none, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphAddDependencies(graph, &b, &c, nullptr, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddDependencies(graph, &b, &c, nullptr, 1), CUDA_ERROR_INVALID_VALUE);  // there already
    EXPECT_EQ(cuGraphAddDependencies(graph, &b, &b, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
    CUgraphNode before[4] = {};
    size_t count = 4;
    EXPECT_EQ(cuGraphNodeGetDependencies(c, before, nullptr, &count), CUDA_SUCCESS);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(before[0], b);
    EXPECT_EQ(before[1], nullptr);
    // A circle is found when the graph is instantiated.
    EXPECT_EQ(cuGraphAddDependencies(graph, &c, &a, nullptr, 1), CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    EXPECT_EQ(cuGraphRemoveDependencies(graph, &c, &a, nullptr, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    // Taking a node away takes its edges.
    EXPECT_EQ(cuGraphDestroyNode(b), CUDA_SUCCESS);
    count = 4;
    EXPECT_EQ(cuGraphNodeGetDependencies(c, before, nullptr, &count), CUDA_SUCCESS);
    EXPECT_EQ(count, 0u);
    // Edge data cannot be given where there is no room for it.
    CUgraphNode first = add_kernel(graph, {}, loaded.function("plain"));
    CUgraphNode second = add_kernel(graph, {}, loaded.function("plain"));
    CUgraphEdgeData data{};
    data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    EXPECT_EQ(cuGraphAddDependencies(graph, &first, &second, &data, 1), CUDA_SUCCESS);
    count = 4;
    EXPECT_EQ(cuGraphNodeGetDependencies(second, before, nullptr, &count), CUDA_ERROR_LOSSY_QUERY);
    CUgraphEdgeData edges[4] = {};
    EXPECT_EQ(cuGraphNodeGetDependencies(second, before, edges, &count), CUDA_SUCCESS);
    EXPECT_EQ(edges[0].type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  });
}

TEST(Graph, UpdateTakesParametersAndRefusesOtherShapes) {
  const ChildEnd end = run_child(kKernelTimes, [] {
    Loaded loaded;
    const auto build = [&](unsigned grid, bool extra_edge, bool memset) {
      CUgraph graph = new_graph();
      CUgraphNode a = add_kernel(graph, {}, loaded.function("plain"), grid);
      if (memset) {
        CUgraphNode empty = nullptr;
        EXPECT_EQ(cuGraphAddEmptyNode(&empty, graph, &a, 1), CUDA_SUCCESS);
      } else {
        add_kernel(graph, extra_edge ? std::vector<CUgraphNode>{a} : std::vector<CUgraphNode>{},
                   loaded.function("bounded"));
      }
      return graph;
    };
    CUgraph graph = build(1, true, false);
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info{};
    EXPECT_EQ(cuGraphExecUpdate(exec, build(9, true, false), &info), CUDA_SUCCESS);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    EXPECT_EQ(cuGraphExecUpdate(exec, build(5, false, false), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_EQ(cuGraphExecUpdate(exec, build(5, true, true), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    EXPECT_NE(info.errorNode, nullptr);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    // Nodes still go by the handles of the graph that was instantiated.
    CUgraphNode nodes[2];
    size_t count = 2;
    EXPECT_EQ(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
    const CUDA_KERNEL_NODE_PARAMS params = kernel_params(loaded.function("plain"), 11);
    EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, nodes[0], &params), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
  std::vector<std::string> grids;
  for (const Json& kernel : end.lines("kernel")) {
    if (kernel["symbol"] == "plain") grids.push_back(kernel["grid"].dump());
  }
  ASSERT_EQ(grids.size(), 2u);
  EXPECT_NE(grids[0].find('9'), std::string::npos);
  EXPECT_NE(grids[1].find("11"), std::string::npos);
}

TEST(Graph, ClonesAndChildren) {
  const ChildEnd end = run_child(kKernelTimes, [] {
    Loaded loaded;
    CUgraph inner = new_graph();
    CUgraphNode k = add_kernel(inner, {}, loaded.function("plain"));
    add_kernel(inner, {k}, loaded.function("bounded"));
    CUgraph outer = new_graph();
    CUgraphNode child = nullptr, twin = nullptr;
    CUgraphNode first = add_kernel(outer, {}, loaded.function("bounded"));
    EXPECT_EQ(cuGraphAddChildGraphNode(&child, outer, &first, 1, inner), CUDA_SUCCESS);
    add_kernel(outer, {child}, loaded.function("bounded"));
    CUgraph embedded = nullptr;
    EXPECT_EQ(cuGraphChildGraphNodeGetGraph(child, &embedded), CUDA_SUCCESS);
    EXPECT_NE(embedded, inner);
    EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);  // the node's
    EXPECT_EQ(cuGraphDestroy(inner), CUDA_SUCCESS);
    CUgraph clone = nullptr;
    EXPECT_EQ(cuGraphClone(&clone, outer), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphNodeFindInClone(&twin, child, clone), CUDA_SUCCESS);
    EXPECT_NE(twin, child);
    CUgraphNodeType type{};
    EXPECT_EQ(cuGraphNodeGetType(twin, &type), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_GRAPH);
    EXPECT_EQ(cuGraphDestroy(outer), CUDA_SUCCESS);
    CUgraphExec exec = instantiate(clone);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDebugDotPrint(clone, "/tmp/simgpu-graph-test.dot", 0), CUDA_SUCCESS);
    std::ifstream dot("/tmp/simgpu-graph-test.dot");
    std::string text((std::istreambuf_iterator<char>(dot)), {});
    EXPECT_NE(text.find("KERNEL\\nplain"), std::string::npos);
    unlink("/tmp/simgpu-graph-test.dot");
  });
  const auto launches = end.lines("graph_launch");
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0]["nodes"], 4);
  EXPECT_EQ(end.lines("kernel").size(), 4u);
  EXPECT_EQ(end_of(launches[0]) - start_of(launches[0]), 250'000u);  // 50 + (100 + 50) + 50
}

}  // namespace
}  // namespace simgpu
