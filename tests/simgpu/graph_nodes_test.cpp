// What the nodes of a graph do at each replay: move data, call the host, wait, allocate; user objects.

#include "tests/simgpu/graph_fixture.h"

namespace simgpu {
namespace {

TEST(Graph, MovesDataAtEachReplay) {
  const ChildEnd end = run_child({}, [] {
    Loaded loaded;
    CUdeviceptr device = 0;
    EXPECT_EQ(cuMemAlloc(&device, 4096), CUDA_SUCCESS);
    std::vector<unsigned char> back(4096);
    CUgraph graph = new_graph();
    CUDA_MEMSET_NODE_PARAMS fill{device, 0, 0xab, 1, 4096, 1};
    CUgraphNode memset = nullptr, copy = nullptr;
    EXPECT_EQ(cuGraphAddMemsetNode(&memset, graph, nullptr, 0, &fill, loaded.context), CUDA_SUCCESS);
    CUDA_MEMCPY3D move{};
    move.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    move.srcDevice = device;
    move.dstMemoryType = CU_MEMORYTYPE_HOST;
    move.dstHost = back.data();
    move.WidthInBytes = 4096;
    move.Height = move.Depth = 1;
    EXPECT_EQ(cuGraphAddMemcpyNode(&copy, graph, &memset, 1, &move, loaded.context), CUDA_SUCCESS);
    CUgraphExec exec = instantiate(graph);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(back, std::vector<unsigned char>(4096, 0xab));
    // The executable graph alone is changed; the graph keeps what it had.
    fill.value = 0x11;
    EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, memset, &fill, loaded.context), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(back, std::vector<unsigned char>(4096, 0x11));
    CUDA_MEMSET_NODE_PARAMS answer{};
    EXPECT_EQ(cuGraphMemsetNodeGetParams(memset, &answer), CUDA_SUCCESS);
    EXPECT_EQ(answer.value, 0xabu);
    // Switched off, a node does nothing.
    fill.value = 0x22;
    EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, memset, &fill, loaded.context), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphNodeSetEnabled(exec, memset, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(back, std::vector<unsigned char>(4096, 0x11));
  });
  EXPECT_EQ(end.lines("memset", "cuGraphLaunch").size(), 2u);
  const auto copies = end.lines("copy", "cuGraphLaunch");
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[0]["kind"], "DtoH");
  EXPECT_EQ(copies[0]["bytes"], 4096);
}

std::atomic<int> host_calls{0};
void CUDA_CB count_call(void* by) { host_calls += static_cast<int>(reinterpret_cast<intptr_t>(by)); }

TEST(Graph, HostNodesRunInTheirPlace) {
  const ChildEnd end = run_child(kKernelTimes, [] {
    Loaded loaded;
    CUgraph graph = new_graph();
    CUgraphNode a = add_kernel(graph, {}, loaded.function("plain")), host = nullptr, record = nullptr;
    CUDA_HOST_NODE_PARAMS params{count_call, reinterpret_cast<void*>(3)};
    EXPECT_EQ(cuGraphAddHostNode(&host, graph, &a, 1, &params), CUDA_SUCCESS);
    CUgraphNode b = add_kernel(graph, {host}, loaded.function("bounded"));
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddEventRecordNode(&record, graph, &b, 1, event), CUDA_SUCCESS);
    CUgraphExec exec = instantiate(graph);
    CUstream stream = new_stream();
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(host_calls.load(), 6);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  });
  const auto launches = end.lines("graph_launch");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_GE(start_of(launches[1]), end_of(launches[0]));
  const auto kernels = end.lines("kernel");
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_GE(start_of(kernels[1]), end_of(kernels[0]));
}

TEST(Graph, WaitsForAValueAndForAnEvent) {
  run_child(kKernelTimes, [] {
    Loaded loaded;
    CUdeviceptr flag = 0;
    EXPECT_EQ(cuMemAlloc(&flag, 4), CUDA_SUCCESS);
    *reinterpret_cast<volatile unsigned*>(flag) = 0;
    CUstreamBatchMemOpParams wait{};
    wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.waitValue.address = flag;
    wait.waitValue.value = 5;
    wait.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CUDA_BATCH_MEM_OP_NODE_PARAMS operations{loaded.context, 1, &wait, 0};
    CUgraph graph = new_graph();
    CUgraphNode node = nullptr, after = nullptr;
    EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &operations), CUDA_SUCCESS);
    after = add_kernel(graph, {node}, loaded.function("bounded"));
    static_cast<void>(after);
    CUgraphExec exec = instantiate(graph);
    CUstream stream = new_stream();
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    usleep(5000);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    *reinterpret_cast<volatile unsigned*>(flag) = 5;
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
}

TEST(Graph, MemoryNodesLiveFromLaunchToFree) {
  const ChildEnd end = run_child({}, [] {
    Loaded loaded;
    CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.poolProps.location.id = 0;
    params.bytesize = 1 << 20;
    CUgraphNode alloc = nullptr, fill = nullptr;
    EXPECT_EQ(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params), CUDA_SUCCESS);
    ASSERT_NE(params.dptr, 0u);
    CUDA_MEMSET_NODE_PARAMS set{params.dptr, 0, 0x5a, 1, 1 << 20, 1};
    EXPECT_EQ(cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &set, loaded.context), CUDA_SUCCESS);
    CUgraph clone = nullptr;
    EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    CUgraphExec exec = instantiate(graph), second = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);  // one at a time
    EXPECT_EQ(cuMemFree(params.dptr), CUDA_ERROR_INVALID_VALUE);                 // not allocated yet
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);  // still there
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    unsigned char byte = 0;
    EXPECT_EQ(cuMemcpyDtoH(&byte, params.dptr + 12345, 1), CUDA_SUCCESS);
    EXPECT_EQ(byte, 0x5a);
    cuuint64_t used = 0;
    EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    EXPECT_EQ(used, 1u << 20);
    EXPECT_EQ(cuMemFreeAsync(params.dptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(params.dptr), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    EXPECT_EQ(used, 0u);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    // What the last launch has allocated outlives the graph, until it is freed.
    EXPECT_EQ(cuMemsetD8(params.dptr, 0x77, 1 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&byte, params.dptr + 12345, 1), CUDA_SUCCESS);
    EXPECT_EQ(byte, 0x77);
    EXPECT_EQ(cuMemFreeAsync(params.dptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(params.dptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    for (const CUgraphMem_attribute which :
         {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT}) {
      EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, which, &used), CUDA_SUCCESS);
      EXPECT_EQ(used, 0u);
    }
  });
  EXPECT_EQ(end.lines("alloc", "cuGraphLaunch").size(), 4u);
  EXPECT_EQ(end.lines("free", "cuMemFreeAsync").size(), 2u);
  EXPECT_EQ(end.lines("alloc", "cuGraphLaunch")[0]["memory"], "pool");
  EXPECT_EQ(end.lines("free", "cuGraphLaunch").size(), 1u);
  EXPECT_EQ(end.lines("free", "cuMemFree").size(), 1u);
}

TEST(Graph, UserObjectsGoWithTheirLastHolder) {
  run_child({}, [] {
    Loaded loaded;
    CUuserObject object = nullptr;
    EXPECT_EQ(cuUserObjectCreate(&object, reinterpret_cast<void*>(1), count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              CUDA_SUCCESS);
    CUgraph graph = new_graph();
    EXPECT_EQ(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
    CUgraphExec exec = instantiate(graph);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(host_calls.load(), 0);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(host_calls.load(), 1);
    EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
  });
}

}  // namespace
}  // namespace simgpu
