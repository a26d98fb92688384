// Stream capture: what becomes a node, what joins, what is forbidden and what it breaks.
#include <thread>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu {
namespace {

CUgraph end_capture(CUstream stream, CUresult want = CUDA_SUCCESS) {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), want);
  return graph;
}

void begin_capture(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  EXPECT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
}

CUevent new_event() {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  return status;
}

size_t node_count(CUgraph graph) {
  size_t count = 0;
  EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  return count;
}

size_t edge_count(CUgraph graph) {
  size_t count = 0;
  EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
  return count;
}

TEST(Capture, ForksAndJoinsByEvents) {
  const ChildEnd end = run_child({{"SIMGPU_KERNEL_TIME", "plain=100us,bounded=300us"}}, [] {
    Loaded loaded;
    CUstream one = new_stream(), two = new_stream();
    CUevent fork = new_event(), join = new_event();
    begin_capture(one);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, one), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(fork, one), CUDA_SUCCESS);
    EXPECT_EQ(status_of(two), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(cuStreamWaitEvent(two, fork, 0), CUDA_SUCCESS);
    EXPECT_EQ(status_of(two), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(launch(loaded.function("bounded"), 2, 32, two), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 3, 32, one), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(join, two), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(one, join, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 4, 32, one), CUDA_SUCCESS);
    CUgraph graph = end_capture(one);
    EXPECT_EQ(status_of(two), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(node_count(graph), 4u);
    EXPECT_EQ(edge_count(graph), 4u);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(one), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 5, 32, two), CUDA_SUCCESS);  // an ordinary stream again
    EXPECT_EQ(cuStreamSynchronize(two), CUDA_SUCCESS);
  });
  const auto nodes = end.lines("node");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(end.lines("kernel", "cuLaunchKernel").size(), 1u);  // captured launches ran in the replay alone
  const auto replayed = end.lines("kernel", "cuGraphLaunch");
  ASSERT_EQ(replayed.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {  // created and replayed in the same order here
    EXPECT_EQ(replayed[i]["graph"]["node"], nodes[i]["node"]);
    EXPECT_EQ(replayed[i]["symbol"], nodes[i]["symbol"]);
  }
  const auto launches = end.lines("graph_launch");
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(end_of(launches[0]) - start_of(launches[0]), 500'000u);
}

TEST(Capture, TakesEveryKindOfWork) {
  run_child({}, [] {
    Loaded loaded;
    CUdeviceptr device = 0, pooled = 0;
    EXPECT_EQ(cuMemAlloc(&device, 1024), CUDA_SUCCESS);
    std::vector<unsigned char> source(1024, 7), back(1024, 0);
    CUstream stream = new_stream();
    CUgraph small = nullptr;
    CUgraphExec small_exec = nullptr;
    EXPECT_EQ(cuGraphCreate(&small, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiate(&small_exec, small, 0), CUDA_SUCCESS);
    begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(cuMemcpyHtoDAsync(device, source.data(), 1024, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&pooled, 1024, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(pooled, 9, 512, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoDAsync(device, pooled, 512, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(pooled, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuLaunchHostFunc(
                  stream, [](void* p) { *static_cast<int*>(p) += 1; }, back.data()),
              CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(small_exec, stream), CUDA_SUCCESS);
    CUgraph graph = end_capture(stream);
    EXPECT_EQ(node_count(graph), 7u);
    EXPECT_EQ(edge_count(graph), 6u);
    CUgraphNode nodes[7];
    size_t count = 7;
    EXPECT_EQ(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
    const CUgraphNodeType want[] = {CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET,
                                    CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEM_FREE,  CU_GRAPH_NODE_TYPE_HOST,
                                    CU_GRAPH_NODE_TYPE_GRAPH};
    for (size_t i = 0; i < 7; ++i) {
      CUgraphNodeType type{};
      EXPECT_EQ(cuGraphNodeGetType(nodes[i], &type), CUDA_SUCCESS);
      EXPECT_EQ(type, want[i]) << i;
    }
    EXPECT_EQ(back[0], 0);  // nothing has run
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    int calls = 0;
    std::copy(back.begin(), back.begin() + 4, reinterpret_cast<unsigned char*>(&calls));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(cuMemcpyDtoH(back.data(), device, 1024), CUDA_SUCCESS);
    EXPECT_EQ(back[0], 9);
    EXPECT_EQ(back[511], 9);
    EXPECT_EQ(back[512], 7);
  });
}

TEST(Capture, TellsAboutItself) {
  run_child({}, [] {
    Loaded loaded;
    CUstream stream = new_stream();
    begin_capture(stream);
    EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    EXPECT_EQ(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &count), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_NE(id, 0u);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);  // being written
    // A node of the program's own, put in between.
    CUgraphNode own = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&own, graph, nodes, count), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, &own, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
              CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("bounded"), 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(end_capture(stream), graph);
    EXPECT_EQ(node_count(graph), 3u);
    CUgraphNode after[2] = {};
    size_t next = 2;
    EXPECT_EQ(cuGraphNodeGetDependentNodes(own, after, nullptr, &next), CUDA_SUCCESS);
    EXPECT_EQ(next, 1u);
    EXPECT_EQ(end_capture(stream, CUDA_ERROR_ILLEGAL_STATE), nullptr);
    EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    // Into a graph that is there already.
    EXPECT_EQ(cuStreamBeginCaptureToGraph(stream, graph, &after[0], nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(end_capture(stream), graph);
    EXPECT_EQ(node_count(graph), 4u);
    EXPECT_EQ(edge_count(graph), 3u);
  });
}

TEST(Capture, ForbiddenCallsBreakIt) {
  run_child({}, [] {
    Loaded loaded;
    CUstream stream = new_stream(), other = new_stream(), blocking = new_stream(CU_STREAM_DEFAULT);
    CUdeviceptr p = 0;

    begin_capture(stream);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);

    begin_capture(stream);
    EXPECT_EQ(cuMemAlloc(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(cuMemAlloc(&p, 64), CUDA_SUCCESS);
    end_capture(stream);

    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin_capture(stream);
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    end_capture(stream);

    // Work that never comes back to the origin.
    CUevent event = new_event();
    begin_capture(stream);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, other), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(stream);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, other), CUDA_SUCCESS);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);

    // An event from outside; two captures; another stream's end; the legacy stream.
    CUevent outside = new_event();
    EXPECT_EQ(cuEventRecord(outside, other), CUDA_SUCCESS);
    begin_capture(stream);
    EXPECT_EQ(cuStreamWaitEvent(stream, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(stream);
    begin_capture(other);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_capture(other, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(stream);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    end_capture(other, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(blocking);
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_capture(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(stream);  // a non-blocking stream does not mind
    EXPECT_EQ(launch(loaded.function("plain"), 1, 32, nullptr), CUDA_SUCCESS);
    end_capture(stream);
  });
}

TEST(Capture, OtherThreads) {
  run_child({}, [] {
    Loaded loaded;
    CUstream stream = new_stream();
    CUdeviceptr p = 0;
    const auto elsewhere = [&](auto&& body) {
      std::thread thread([&] {
        EXPECT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
        body();
      });
      thread.join();
    };
    begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    elsewhere([&] { EXPECT_EQ(cuMemAlloc(&p, 64), CUDA_SUCCESS); });
    elsewhere([&] { end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); });
    end_capture(stream);
    begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    elsewhere([&] { EXPECT_EQ(cuMemAlloc(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); });
    end_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    elsewhere([&] { end_capture(stream); });
  });
}

}  // namespace
}  // namespace simgpu
