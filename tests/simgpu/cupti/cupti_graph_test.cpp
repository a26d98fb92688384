// Graphs, peers, synchronization, memory, modules, external ids, callbacks.
#include "tests/simgpu/cupti/cupti_fixture.h"

namespace simgpu {
namespace {

struct TwoKernels {
  CUgraph graph = nullptr;
  CUgraphNode nodes[3] = {};
  CUgraphExec exec = nullptr;

  explicit TwoKernels(const Loaded& loaded) {
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; ++i) {
      CUDA_KERNEL_NODE_PARAMS params{};
      void* none[1] = {nullptr};
      params.func = loaded.function("plain");
      params.gridDimX = i + 1;
      params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
      params.blockDimX = 32;
      params.kernelParams = none;
      EXPECT_EQ(cuGraphAddKernelNode(&nodes[i], graph, i == 0 ? nullptr : &nodes[i - 1], i == 0 ? 0 : 1, &params),
                CUDA_SUCCESS);
    }
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  }
};

TEST(CuptiGraph, NodesOfOneReplayShareItsCorrelation) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    TwoKernels two(loaded);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(cuGraphLaunch(two.exec, nullptr), CUDA_SUCCESS);
    finish_client();
    const auto kernels = client().kernels();
    ASSERT_EQ(kernels.size(), 12u);
    uint32_t exec_id = 0;
    ASSERT_EQ(cuptiGetGraphExecId(two.exec, &exec_id), CUPTI_SUCCESS);
    uint64_t original = 0;
    ASSERT_EQ(cuptiGetGraphNodeId(two.nodes[0], &original), CUPTI_SUCCESS);
    EXPECT_GT(original, uint64_t{1} << 32);
    std::map<uint32_t, std::vector<CUpti_ActivityKernel10>> replays;
    for (const auto& r : kernels) replays[r.correlationId].push_back(r);
    ASSERT_EQ(replays.size(), 4u);
    const std::vector<Json> truth = truth_so_far("kernel");
    for (const auto& replay : replays) {
      const uint32_t correlation = replay.first;
      const auto& nodes = replay.second;
      ASSERT_EQ(nodes.size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(nodes[i].graphId, exec_id);
        EXPECT_EQ(nodes[i].gridX, static_cast<int>(i) + 1);
        EXPECT_EQ(nodes[i].graphNodeId, replays.begin()->second[i].graphNodeId);
        EXPECT_NE(nodes[i].graphNodeId, original);  // instantiation cloned it
        EXPECT_TRUE(std::any_of(truth.begin(), truth.end(), [&](const Json& t) {
          return t["correlation"].get<uint32_t>() == correlation && t["start_ns"].get<uint64_t>() == nodes[i].start &&
                 t["graph"]["node"].get<uint64_t>() == reinterpret_cast<uint64_t>(two.nodes[i]);
        }));
      }
      EXPECT_LT(nodes[0].graphNodeId, nodes[1].graphNodeId);
      EXPECT_LE(nodes[0].end, nodes[1].start);
    }
  });
}

TEST(CuptiGraph, GraphLevelHidesTheNodes) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
    Loaded loaded;
    TwoKernels two(loaded);
    ASSERT_EQ(cuGraphLaunch(two.exec, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(launch(loaded.function("plain"), 9, 32), CUDA_SUCCESS);
    finish_client();
    ASSERT_EQ(client().kernels().size(), 1u);
    EXPECT_EQ(client().kernels()[0].gridX, 9);
    const auto graphs = client().of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    const Json t = truth_so_far("graph_launch").at(0);
    ASSERT_EQ(graphs.size(), 1u);
    EXPECT_EQ(graphs[0].start, t["start_ns"].get<uint64_t>());
    EXPECT_EQ(graphs[0].end, t["end_ns"].get<uint64_t>());
    EXPECT_EQ(graphs[0].correlationId, t["correlation"].get<uint32_t>());
    EXPECT_EQ(graphs[0].streamId, t["stream"].get<uint32_t>());
  });
}

TEST(CuptiKinds, PeerCopiesOfTwoDevices) {
  run_child({{"SIMGPU_CLOCK", "monotonic"}, {"SIMGPU_DEVICES", "2"}}, [] {
    start_client({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2});
    Loaded loaded;
    CUcontext second = nullptr;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    ASSERT_EQ(cuMemAlloc(&a, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&b, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyPeer(b, second, a, loaded.context, 4096), CUDA_SUCCESS);
    finish_client();
    const auto peers = client().of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
    const Json t = truth_so_far("copy").at(0);
    ASSERT_EQ(peers.size(), 1u);
    EXPECT_EQ(client().count(), 1u);
    EXPECT_EQ(peers[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    EXPECT_EQ(peers[0].start, t["start_ns"].get<uint64_t>());
    EXPECT_EQ(peers[0].bytes, 4096u);
    EXPECT_EQ(peers[0].srcDeviceId, 0u);
    EXPECT_EQ(peers[0].dstDeviceId, 1u);
    uint32_t id = 0;
    ASSERT_EQ(cuptiGetContextId(second, &id), CUPTI_SUCCESS);
    EXPECT_EQ(peers[0].dstContextId, id);
    ASSERT_EQ(cuptiGetDeviceId(second, &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 1u);
  });
}

TEST(CuptiKinds, OneContextOnly) {
  run_child({{"SIMGPU_DEVICES", "2"}}, [] {
    start_client({});
    Loaded loaded;
    CUcontext second = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    ASSERT_EQ(cuptiActivityEnableContext(loaded.context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleLoadData(&module, kTestPtx), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function, module, "plain"), CUDA_SUCCESS);
    ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    cuCtxSynchronize();
    ASSERT_EQ(cuCtxSetCurrent(loaded.context), CUDA_SUCCESS);
    finish_client();
    ASSERT_EQ(client().kernels().size(), 1u);
    EXPECT_EQ(client().kernels()[0].deviceId, 0u);
  });
}

TEST(CuptiKinds, SynchronizationsMemoryPoolsJit) {
  run_child(kMonotonic, [] {
    start_client({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                  CUPTI_ACTIVITY_KIND_JIT, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM});
    Loaded loaded;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUdeviceptr memory = 0;
    CUdeviceptr pooled = 0;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory, 1000), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocAsync(&pooled, 2000, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeAsync(pooled, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CUmemoryPool pool = nullptr;
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ASSERT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolTrimTo(pool, 64), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    finish_client();
    const auto syncs = client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    std::vector<int> types;
    types.reserve(syncs.size());
    for (const auto& s : syncs) types.push_back(s.type);
    EXPECT_EQ(types, (std::vector<int>{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
                                       CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                                       CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
                                       CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE}));
    const std::vector<Json> waits = truth_so_far("sync");
    ASSERT_EQ(waits.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(syncs[i + 1].start, waits[i]["call_begin_ns"].get<uint64_t>());
      EXPECT_LE(syncs[i + 1].end, waits[i]["call_end_ns"].get<uint64_t>());
    }
    uint32_t id = 0;
    ASSERT_EQ(cuptiGetStreamIdEx(loaded.context, stream, 0, &id), CUPTI_SUCCESS);
    EXPECT_EQ(syncs[2].streamId, id);
    const auto memories = client().of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    const auto of_bytes = [&](uint64_t bytes) {
      return std::count_if(memories.begin(), memories.end(), [&](const auto& m) { return m.bytes == bytes; });
    };
    EXPECT_EQ(of_bytes(1000), 1);
    EXPECT_EQ(of_bytes(2000), 2);
    const auto pools = client().of<CUpti_ActivityMemoryPool3>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    ASSERT_EQ(pools.size(), 3u);
    EXPECT_EQ(pools[0].memoryPoolOperationType, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
    EXPECT_EQ(pools[1].minBytesToKeep, 64u);
    EXPECT_EQ(pools[2].memoryPoolOperationType, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
    EXPECT_EQ(client().of<CUpti_ActivityJit2>(CUPTI_ACTIVITY_KIND_JIT).size(), 1u);
    const auto contexts = client().of<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
    ASSERT_EQ(contexts.size(), 1u);
    EXPECT_EQ(contexts[0].contextId, syncs[0].contextId);
    ASSERT_EQ(client().of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM).size(), 1u);
  });
}

TEST(CuptiKinds, ExternalIdsPrecedeTheirCall) {
  run_child({}, [] {
    start_client({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1), CUPTI_SUCCESS);
    Loaded loaded;
    const CUfunction function = loaded.function("plain");
    constexpr auto kKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    for (uint64_t id : {100, 200}) {
      ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kKind, id), CUPTI_SUCCESS);
      ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    }
    uint64_t last = 0;
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kKind, &last), CUPTI_SUCCESS);
    EXPECT_EQ(last, 200u);
    ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kKind, &last), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kKind, &last), CUPTI_ERROR_QUEUE_EMPTY);
    ASSERT_EQ(launch(function, 1, 32), CUDA_SUCCESS);
    finish_client();
    const auto ids = client().of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    const auto kernels = client().kernels();
    ASSERT_EQ(ids.size(), 3u);
    ASSERT_EQ(kernels.size(), 4u);
    const uint64_t expected[] = {100, 200, 100};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(ids[i].externalId, expected[i]);
      EXPECT_EQ(ids[i].correlationId, kernels[i].correlationId);
    }
  });
}

struct Heard {
  std::vector<std::string> calls;  // ">name" and "<name"
  std::vector<uint32_t> resources;
  size_t image_bytes = 0;
  std::map<uint64_t, uint64_t> clones;  // clone's id → original's
  uint64_t carried = 0;
} heard;

void CUPTIAPI hear(void*, CUpti_CallbackDomain domain, CUpti_CallbackId number, const void* data) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    const bool enter = call.callbackSite == CUPTI_API_ENTER;
    if (enter) *call.correlationData = 77;
    if (!enter) heard.carried += *call.correlationData;
    heard.calls.push_back((enter ? ">" : "<") + std::string(call.functionName));
    return;
  }
  heard.resources.push_back(number);
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  if (number == CUPTI_CBID_RESOURCE_MODULE_LOADED)
    heard.image_bytes = static_cast<CUpti_ModuleResourceData*>(resource.resourceDescriptor)->cubinSize;
  if (number == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
    const auto& graph = *static_cast<CUpti_GraphData*>(resource.resourceDescriptor);
    uint64_t clone = 0;
    uint64_t original = 0;
    EXPECT_EQ(cuptiGetGraphNodeId(graph.node, &clone), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiGetGraphNodeId(graph.originalNode, &original), CUPTI_SUCCESS);
    heard.clones[clone] = original;
  }
}

TEST(CuptiCallbacks, CallsResourcesAndTheOneSlot) {
  run_child({}, [] {
    CUpti_SubscriberHandle subscriber = nullptr;
    CUpti_SubscriberHandle second = nullptr;
    ASSERT_EQ(cuptiSubscribe(&subscriber, hear, nullptr), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe(&second, hear, nullptr), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ASSERT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
              CUPTI_SUCCESS);
    uint32_t on = 0;
    ASSERT_EQ(
        cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
        CUPTI_SUCCESS);
    EXPECT_EQ(on, 1u);
    const char* name = nullptr;
    ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &name),
              CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cuMemAlloc_v2");
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    TwoKernels two(loaded);
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(two.exec, nullptr), CUDA_SUCCESS);
    finish_client();
    EXPECT_EQ(heard.calls, (std::vector<std::string>{">cuLaunchKernel", "<cuLaunchKernel"}));
    EXPECT_EQ(heard.carried, 77u);
    const auto count = [](uint32_t number) {
      return std::count(heard.resources.begin(), heard.resources.end(), number);
    };
    EXPECT_EQ(count(CUPTI_CBID_RESOURCE_CONTEXT_CREATED), 1);
    EXPECT_EQ(count(CUPTI_CBID_RESOURCE_MODULE_LOADED), 1);
    EXPECT_EQ(count(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED), 3);
    EXPECT_EQ(count(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED), 3);
    EXPECT_EQ(count(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED), 1);
    EXPECT_GT(heard.image_bytes, 100u);
    size_t in_graph = 0;
    for (const auto& r : client().kernels()) {
      if (r.graphId == 0) continue;
      ++in_graph;
      uint64_t original = 0;
      ASSERT_EQ(cuptiGetGraphNodeId(two.nodes[r.gridX - 1], &original), CUPTI_SUCCESS);
      EXPECT_EQ(heard.clones[r.graphNodeId], original);
    }
    EXPECT_EQ(in_graph, 3u);
    ASSERT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    const size_t before = heard.calls.size();
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(heard.calls.size(), before);
    EXPECT_EQ(cuptiSubscribe(&second, hear, nullptr), CUPTI_SUCCESS);
  });
}

TEST(CuptiCallbacks, FinalizeForgetsAllAndItBeginsAgain) {
  run_child({}, [] {
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    Loaded loaded;
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    finish_client();
    ASSERT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT_EQ(client().kernels().size(), 1u);
    start_client({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_EQ(launch(loaded.function("plain"), 1, 32), CUDA_SUCCESS);
    finish_client();
    EXPECT_EQ(client().kernels().size(), 2u);
  });
}

}  // namespace
}  // namespace simgpu
